/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What replay does in a boot without replay that is compared with others: a control session. */

#include "pack/pack.h"

/* Requests headstart's units, headstartd, and its libraries that the pack contains, and does not
 * wait for the data. A control boot stands for a boot without headstart, but headstartd records it.
 * This recorder should wait for the disk as rarely as possible. The lookups of the files may wait.
 * `root` is where the root filesystem is mounted. All errors are ignored. */
void control_read_ahead(const Pack *p, const char *root);
