/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* State is replaced whole: temporary file beside the target, fsync, rename, fsync of the
 * directory. A reader sees the old file or the new one, never a part. */

#include "base/macros.h"

/* Replaces `name` (relative to dir_fd, AT_FDCWD allowed) by `size` bytes of data, mode `mode`.
 * 0, or the negative errno of the step that failed (-ENOSPC, -EROFS, -EACCES, …); then the old
 * file is as it was and no temporary file is left. */
int atomic_file_write(int dir_fd, const char *name, const void *data, size_t size, unsigned mode);

/* Writes to a path that somebody named: like atomic_file_write() where there is no such file yet or
 * a regular one, in whose place, if it is a symlink to it, stays the symlink; into what else is
 * there (a device, a FIFO: waits for its reader). 0 or a negative errno. */
int output_file_write(const char *path, const void *data, size_t size, unsigned mode);

/* Reads the whole regular file into a NUL-terminated buffer of *ret_size bytes (the NUL is not
 * counted). The caller frees *ret. -ENOENT, -EISDIR, -EBADMSG (not a regular file), -E2BIG
 * (larger than max_size), or another negative errno. Never blocks on a FIFO or a device. */
int file_read_whole(int dir_fd, const char *name, size_t max_size, char **ret, size_t *ret_size);

/* Creates the directory and its parents as needed, the last one with mode `mode`. 0 or errno. */
int make_directories(const char *path, unsigned mode);

/* Sets a file aside that could not be used: renames it to NAME.bad (replacing an older one), so
 * that the next writer starts anew and nothing is lost. 0 or a negative errno. */
int file_set_aside(int dir_fd, const char *name);
