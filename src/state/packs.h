/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Facts about the packs that exist. */

#include <stdbool.h>
#include <stdint.h>

/* Reads from the pack that will be replaced its salt, and whether one of its disks was measured to
 * seek slowly. 0, or a negative errno if there is no usable pack. */
int packs_read_previous(int state_fd, const char *name, uint64_t *ret_salt, bool *ret_seeks_slowly);

/* True if the state directory has a pack for everyone. */
bool packs_exist(int state_fd);

/* True if these packs exist and are newer than the model, the model below `root` that the
 * distribution ships, and the configuration below `system_fd`. */
bool packs_are_current(int state_fd, int system_fd, const char *root);
