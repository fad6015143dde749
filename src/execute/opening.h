/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Opens the files that a pack names. Their paths may name other objects now. */

#include "execute/operations.h"

#include <sys/stat.h>

/* Returns true if `st` is of the file that was planned. The type must be equal; of a directory,
 * also the inode; of a file, also inode, size, mtime and ctime. A volatile file
 * (PACK_FILE_VOLATILE) may be any version of it. Pure. */
bool opening_is_planned(const PackFile *f, const struct stat *st);

/* Returns true if the file was written to after it was planned: its mtime is another one. Pure. */
bool opening_was_written(const PackFile *f, const struct stat *st);

/* Looks the file up with open_beneath(): it waits for no FIFO, wakes no device, triggers no
 * automount, follows no symlink and enters no other filesystem. Succeeds only for the planned file
 * (opening_is_planned()). If `reading`, the file is then opened for reading, without a change of
 * its access time where that is allowed.
 *
 * Returns a descriptor; 0 if not `reading`; or a negative errno and *ret_why. After -EMFILE and
 * -ENFILE the caller may close other descriptors and try again. */
int open_planned(int root_fd, const char *path, const PackFile *f, bool reading,
                 ReplaySkip *ret_why);

/* Raises the limit of open files to `own` + `wanted`, but not above the hard limit or 65,536.
 * Returns how many files can be open in addition to `own`: at least 2. */
uint32_t descriptors_raise(uint64_t own, uint64_t wanted);
