/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Knows the directories on which local block-backed filesystems are mounted, and looks up paths
 * below them. Keeps none of them open, because a filesystem with an open descriptor cannot be
 * unmounted. For packs, execute/mounted.h and execute/opening.h have these tasks, and also
 * compare inodes. */

#include "base/macros.h"

#include <sys/stat.h>

typedef struct MountDir {
    char *target;
    uint64_t dev;    /* device number as in mountinfo; 0: its metadata must not be read */
    uint64_t st_dev; /* 0: it could not be opened, or must not be */
} MountDir;

typedef struct MountDirs {
    MountDir *dirs;
    size_t n, allocated;
} MountDirs;

void mount_dirs_done(MountDirs *m);
#define _cleanup_mount_dirs_ _cleanup_(mount_dirs_done)

/* Finds the mount points of the local block-backed filesystems at or below `root`. Those whose
 * number or st_dev is one of the `n_hung` in `hung` cannot be looked into. Returns 0 or a negative
 * errno. */
int mount_dirs_read(const char *root, const uint64_t *hung, size_t n_hung, MountDirs *ret);

/* Returns the number, as in mountinfo, of the filesystem that contains the absolute path, or 0. */
uint64_t mount_dirs_dev(const MountDirs *m, const char *path);

/* Returns true if the filesystem with that device number is one of those in `m`. */
bool mount_dirs_contain(const MountDirs *m, uint64_t dev);

/* Looks an absolute path up on the mount that contains it, without following symlinks or entering
 * another mount (base/open.h). The lookup reads the inode. Returns a descriptor (O_PATH) of a
 * regular file or directory, and its attributes in *ret; -EXDEV (on none of these filesystems),
 * -ESTALE (another filesystem is mounted there now), -EINVAL (neither a file nor a directory), or
 * another negative errno. */
int mount_dirs_open_path(const MountDirs *m, const char *path, struct stat *ret);
