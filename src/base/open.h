/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Opening files whose path comes from a stored file: whatever the path has become, nothing is
 * triggered by it. First open_beneath(), then fstat(2) of the descriptor, then fd_reopen(). */

#include "base/macros.h"

/* Looks `path` up below the directory dir_fd, with O_PATH: no symlink is followed (a symlink at the
 * end is opened itself), no mount and no automount is entered, no device wakes and no FIFO waits.
 * The lookup reads the inode into memory. "." is the directory itself. A descriptor or a negative
 * errno
 * (-EXDEV: the path leads to another mount; -ELOOP: a symlink); dir_fd itself if that is negative.
 */
int open_beneath(int dir_fd, const char *path);

/* Opens the file of the descriptor `fd` (O_PATH allowed) anew with `flags`; O_CLOEXEC, O_NOCTTY and
 * O_NONBLOCK are added. A descriptor or a negative errno. */
int fd_reopen(int fd, int flags);

/* The same, and the file's access time stays as it is where the owner or privileges allow that. */
int fd_reopen_noatime(int fd, int flags);

/* The path of the file of the descriptor, NUL-terminated. 0, -ENAMETOOLONG (buffer too small),
 * -ESTALE (it has no absolute path), or another negative errno. */
int fd_get_path(int fd, char *path, size_t size);

/* The name below /proc by which a library that wants a path can open the descriptor's file. Returns
 * buf. */
#define FD_PROC_PATH_MAX 32
const char *fd_proc_path(char buf[static FD_PROC_PATH_MAX], int fd);
