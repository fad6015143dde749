/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The launch sets that concern one file. */

#include "command/cli.h"
#include "model/model.h"

/* Makes a table of the launch sets that contain the file, and of those that are read when the file
 * starts as an application, with at most `limit` rows (0: all). `file` is its index in the model.
 * At most LAUNCH_SETS_READ sets are read. The caller frees *ret. Returns 0, or an error that was
 * reported. */
#define LAUNCH_SETS_READ 256U
int explain_launch_sets(const Context *c, int state_fd, const Model *m, uint32_t file,
                        uint64_t limit, Table **ret);
