/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the kernel says of the disk below the root filesystem. */

#include <limits.h>
#include <stdbool.h>

/* Writes the real path of an attribute in sysfs of the disk that holds the filesystem of root_fd,
 * for example of `read_ahead_kb` in the group `bdi`. A partition has the attributes of its disk.
 * Returns 0, -ENOENT (btrfs has a number that belongs to no device), or another negative errno. */
int early_disk_attribute(int root_fd, const char *group, const char *name,
                         char ret[static PATH_MAX]);

/* Returns false if the kernel says that this disk does not rotate. Returns true for a disk of which
 * nothing is known, for example because sysfs is not mounted. */
bool early_disk_rotates(int root_fd);
