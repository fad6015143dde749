/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The mount table of now. */

#include "volume/mountinfo.h"

/* Reads /proc/self/mountinfo of the root directory `root_fd` (AT_FDCWD: our own), at most 8 MiB of
 * it. The caller calls mount_table_done(). 0, -E2BIG, -ENOMEM, or what open(2) and read(2) say. */
int mount_table_read(int root_fd, MountTable *ret);
