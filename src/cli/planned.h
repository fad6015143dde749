/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Facts about the packs that exist. */

#include "cli/cli.h"

/* Reads from the pack that will be replaced its salt, and whether one of its disks was measured to
 * seek slowly. 0, or a negative errno if there is no usable pack. */
int planned_read(int state_fd, const char *name, uint64_t *ret_salt, bool *ret_seeks_slowly);

/* True if the packs are newer than both models and the configuration. */
bool planned_is_current(const Context *c);
