/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Leaves out of a replay what an earlier replay of the same boot has read. Pure. */

#include "execute/operations.h"

/* Removes the operations of `p` that a replay of the pack `earlier` has carried out as well:
 * metadata that lies in one range of metadata of `earlier`, opens of files that `earlier` contains,
 * and data that lies in one range of the same file. A file is the same if filesystem, path, inode,
 * size, mtime and ctime are equal. `l` is the list of `p`; each stream keeps its order. Returns 0,
 * or -ENOMEM with the list unchanged. */
int operations_subtract(const Pack *p, const Pack *earlier, OperationList *l);
