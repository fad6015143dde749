/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Replaces files as a whole: writes a temporary file in the same directory, calls fsync(2) for it,
 * renames it, and calls fsync(2) for the directory. A reader sees the old file or the new one,
 * never a part. */

#include "base/macros.h"

/* Replaces `name` (relative to dir_fd, AT_FDCWD allowed) by `size` bytes of data, with the mode
 * `mode`. The temporary file is NAME.PID.tmp. Temporary files of NAME whose writers were killed are
 * removed. Returns 0, or the negative errno of the step that failed (-ENOSPC, -EROFS, -EACCES,
 * ...). If only the last step fails, the fsync(2) of the directory, the new file is in place. After
 * any other failure the old file is unchanged. No temporary file is left. */
int atomic_file_write(int dir_fd, const char *name, const void *data, size_t size, unsigned mode);

/* Removes the temporary files that writers of `name`, which were killed, have left in the
 * directory. `name` has no slash. Those that a process is writing stay. Errors are ignored. */
void atomic_file_remove_temporaries(int dir_fd, const char *name);

/* Writes to a path from a command line. Replaces a regular file as atomic_file_write() does; a
 * symlink to it stays. Writes into a device or FIFO, and waits until a FIFO has a reader. Refuses
 * files that another user may have prepared in a sticky directory such as /tmp: see
 * open_output_place(). Returns 0, -EACCES (refused), or another negative errno. */
int output_file_write(const char *path, const void *data, size_t size, unsigned mode);

/* Reads the whole regular file into a NUL-terminated buffer of *ret_size bytes (the NUL is not
 * counted). The caller frees *ret. Returns 0, -ENOENT, -EISDIR, -EBADMSG (not a regular file),
 * -E2BIG (larger than max_size), or another negative errno. Never blocks on a FIFO or a device. */
int file_read_whole(int dir_fd, const char *name, size_t max_size, char **ret, size_t *ret_size);

/* Creates the directory with the mode `mode`, and missing parents with the mode 0755. Returns 0,
 * also if the directory exists, or a negative errno. */
int make_directories(const char *path, unsigned mode);

/* Renames a file that cannot be used to NAME.bad, so that its content is not lost. An older
 * NAME.bad is replaced. Returns 0 or a negative errno. */
int file_set_aside(int dir_fd, const char *name);
