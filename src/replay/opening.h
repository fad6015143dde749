/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Opens what a pack names, whatever the path may have become. */

#include "replay/operations.h"

/* Looks the file up below its mount point, as a mere place first (no FIFO waits, no device wakes,
 * no automount triggers, no symlink is followed, no other filesystem is entered), and goes on only
 * if it is the file or directory that was planned: inode, and for files size, mtime and ctime as
 * well. (A directory's change with every entry; it is the same directory, and has no ranges.) The
 * lookup alone brings the inode in; with `reading` the result is a descriptor that can be read,
 * opened without touching the access time where that is allowed.
 *
 * The descriptor; 0 if not `reading`; or a negative errno and *ret_why. -EMFILE and -ENFILE: try
 * again when others were closed. */
int open_planned(int root_fd, const char *path, const PackFile *f, bool reading,
                 ReplaySkip *ret_why);

/* Raises the limit of open files so that `wanted` files can be open beside `own` ones, as far as
 * may be. How many they can be: at least 2. */
uint32_t descriptors_raise(uint64_t own, uint64_t wanted);
