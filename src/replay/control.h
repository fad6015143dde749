/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What headstart-replay does in a control session, a boot that is not replayed so that it can be
 * compared. */

#include "pack/pack.h"

/* Requests headstart's units, headstartd, and those of its libraries that the pack contains. Does
 * not wait for the data; the lookups of the files may wait. A control boot stands for a boot
 * without headstart, but headstartd records it, and should wait for the disk as rarely as possible.
 * `root` is where the root filesystem is mounted. All errors are ignored. */
void control_read_ahead(const Pack *p, const char *root);
