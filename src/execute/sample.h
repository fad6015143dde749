/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Samples whether the contents of a pack are in the page cache. */

#include "execute/mounted.h"

/* Examines at most 16 metadata ranges of each volume and at most 16 data ranges of the pack, evenly
 * distributed, with cachestat(2). `mounted` belongs to the pack. Metadata is examined first: if it
 * is in memory, opening the files of the data ranges needs no I/O. Returns true if all of them are
 * in memory. What cannot be opened, for example because it was replaced or is not mounted, counts
 * as in memory. Returns false without cachestat(2). */
bool pack_is_resident(const Pack *p, const MountedTable *mounted);
