/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Opens and lists directories. */

#include "base/macros.h"

#include <dirent.h>

DEFINE_CLEANUP(DIR *, closedir);
#define _cleanup_closedir_ _cleanup_(closedirp)

/* Makes a DIR of a descriptor and takes ownership of the descriptor, which it closes on failure. A
 * negative fd counts as an error and is returned. Returns 0, -ENOTDIR, -ENOMEM or another negative
 * errno; *ret is untouched on failure. */
int directory_from_fd(int fd, DIR **ret);

/* Opens the directory at `path` relative to dir_fd (AT_FDCWD allowed); `flags` are added to
 * O_RDONLY, O_DIRECTORY and O_CLOEXEC. Returns 0 or a negative errno; *ret is untouched on
 * failure. */
int directory_open(int dir_fd, const char *path, int flags, DIR **ret);

/* Returns the next entry other than "." and "..", valid until the next call. Returns NULL at the
 * end, and if the directory cannot be read any further. */
const struct dirent *directory_next(DIR *d);

/* Is called before each access to the disk. Returns false to end the reading. */
typedef bool (*directory_access_t)(void *arg);

/* Reads a directory into memory: at most 64 MiB of its entries, and the inodes of the first
 * `n_lookups` entries. Each getdents(2) returns a group of entries. The entries of a group are
 * looked up in inode order. Enters no mount and follows no symlink. An error of getdents(2) ends
 * the reading. All errors are ignored. `access` may be NULL. */
void directory_read_ahead(int fd, size_t n_lookups, directory_access_t access, void *arg);
