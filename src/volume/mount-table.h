/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the current mount table. */

#include "volume/mountinfo.h"

/* Reads and parses /proc/self/mountinfo below root_fd (AT_FDCWD: this process), at most 64 MiB. The
 * caller calls mount_table_done(). Returns 0, -E2BIG, -ENOMEM, or another negative errno. */
int mount_table_read(int root_fd, MountTable *ret);
