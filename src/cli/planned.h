/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What was planned before. */

#include "cli/cli.h"

/* Of the pack that is to be replaced: its salt, and whether a disk in it was measured to have a
 * spindle. 0 or a negative errno: there is none that can be used. */
int planned_read(int state_fd, const char *name, uint64_t *ret_salt, bool *ret_spindle);

/* True if all that is planned from (both models, configuration) is older than the packs that there
 * are. */
bool planned_is_current(const Context *c);
