/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads files of /proc, /sys, /etc and /var below a root directory, so that tests can read copies
 * of these files from other machines (as with lscpu --sysroot and lib/path.c of util-linux). */

#include "base/macros.h"

/* Opens `path` (absolute or not; always taken below root_fd) with openat2 and RESOLVE_IN_ROOT:
 * absolute symlinks lead to files below root_fd, too. root_fd may be AT_FDCWD, which means "/"; the
 * path must then be absolute. Returns a descriptor, or a negative errno. Kernels before 5.6
 * (-ENOSYS) are not supported. */
int rooted_open(int root_fd, const char *path, int flags);

/* Reads the whole pseudo file (size unknown, at most max_size bytes) into a NUL-terminated buffer
 * that the caller frees; ret_size may be NULL. Returns 0, -E2BIG if there is more, or another
 * negative errno. */
int rooted_read(int root_fd, const char *path, size_t max_size, char **ret, size_t *ret_size);

/* Reads an unsigned decimal number. Blanks before it, and blanks and newlines after it, are
 * allowed. Returns 0, -EBADMSG if the file holds anything else, or an error of rooted_read(). */
int rooted_read_u64(int root_fd, const char *path, uint64_t *ret);
