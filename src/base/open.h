/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Opens files whose path comes from a stored file. Since the path was stored, a device or a FIFO
 * may have taken the place of the file, and opening it can have side effects. Callers therefore
 * take three steps: open_beneath(), a check of the file's type with fstat(2), and fd_reopen(). */

#include "base/macros.h"

#include <sys/stat.h>

/* Looks `path` up below the directory dir_fd, with O_PATH. It follows no symlink (a symlink at the
 * end is opened itself), enters no mount and no automount, wakes no device and waits for no FIFO.
 * The lookup reads the inode into memory. "." is the directory itself. Returns a descriptor or a
 * negative errno (-EXDEV: the path leads to another mount or out of the directory; -ELOOP: a
 * symlink on the way). Returns dir_fd itself if dir_fd is negative. */
int open_beneath(int dir_fd, const char *path);

/* Like open_beneath(), but reads nothing from a disk: the lookup uses only names that the kernel
 * has in its cache. Returns -EAGAIN if a name is missing there, and -EINVAL before Linux 5.12. */
int open_beneath_cached(int dir_fd, const char *path);

/* Looks an absolute path up with O_PATH. It follows no symlink, since a symlink can lead to an
 * automount; a symlink at the end is opened itself. Mounts are crossed. Returns a descriptor or a
 * negative errno (-ELOOP: a symlink on the way). */
int open_without_symlinks(const char *path);

/* Finds the directory (*ret_dir_fd, O_PATH) and the name in it that an output path refers to. The
 * name need not exist. The name may be a symlink only in /proc/PID/fd, to which /dev/stdout leads.
 * Symlinks on the way are followed as the kernel does with fs.protected_symlinks=1: in a sticky
 * directory that others may write (/tmp), only if this user or the owner of the directory made
 * them. The caller closes *ret_dir_fd and frees *ret_name. Returns 0, -EACCES (a symlink of another
 * user), -EISDIR (the path is empty, or ends in "/", "." or ".."), -ENOTDIR (it ends in "/" after
 * the name of a file), -ELOOP (more than 40 symlinks), -ENAMETOOLONG, -ENOMEM, or another negative
 * errno. */
int open_output_place(const char *path, int *ret_dir_fd, char **ret_name);

/* Returns true if the file in the directory may be used as an output. In a sticky directory that
 * others may write, this user or the owner of the directory must own the file. */
bool output_is_trusted(const struct stat *dir, const struct stat *file);

/* Opens the file of the descriptor `fd` (O_PATH allowed) again with `flags`; O_CLOEXEC, O_NOCTTY
 * and O_NONBLOCK are added. Returns a descriptor or a negative errno. */
int fd_reopen(int fd, int flags);

/* Like fd_reopen(). Reading does not change the file's access time if this process may open the
 * file with O_NOATIME. */
int fd_reopen_noatime(int fd, int flags);

/* Stores the path of the descriptor's file in `path`, NUL-terminated. Returns 0, -ENAMETOOLONG
 * (buffer too small), -ESTALE (the file has no absolute path), or another negative errno. */
int fd_get_path(int fd, char *path, size_t size);

/* Writes the path /proc/self/fd/FD of the descriptor into buf, for libraries that accept only a
 * path. Returns buf. */
#define FD_PROC_PATH_MAX 32
const char *fd_proc_path(char buf[static FD_PROC_PATH_MAX], int fd);
