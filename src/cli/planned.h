/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What was planned before. */

#include "cli/cli.h"

/* Reads from the pack that will be replaced its salt, and whether one of its disks was measured to
 * seek slowly. 0, or a negative errno if there is no usable pack. */
int planned_read(int state_fd, const char *name, uint64_t *ret_salt, bool *ret_seeks_slowly);

/* True if all that is planned from (both models, configuration) is older than the packs that there
 * are. */
bool planned_is_current(const Context *c);
