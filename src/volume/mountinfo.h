/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Parses /proc/self/mountinfo. The functions are pure and need only libc, because headstart-replay
 * uses them, too. */

#include "base/macros.h"

typedef struct Mount {
    unsigned id, parent;
    unsigned major, minor; /* those of st_dev, except on btrfs */
    char *root;            /* path within the filesystem that is mounted here */
    char *target;          /* mount point, octal escapes resolved */
    char *fstype;
    char *source; /* "/dev/sda2", …; the filesystem chooses the text */
    bool readonly;
    char *super_options; /* "rw,subvolid=256,subvol=/@", … */
} Mount;

typedef struct MountTable {
    Mount *mounts; /* in the order of the file */
    size_t n, allocated;
} MountTable;

void mount_table_done(MountTable *t);
#define _cleanup_mount_table_ _cleanup_(mount_table_done)

/* Parses the text of /proc/self/mountinfo. Lines that do not parse are skipped and counted in
 * *ret_bad (may be NULL). Returns 0 or -ENOMEM. */
int mount_table_parse(const char *text, MountTable *ret, size_t *ret_bad);

/* Returns the last mount of the table whose target is "/", or NULL if there is none. The result
 * covers the other mounts there, and is borrowed from the table. */
const Mount *mount_table_root(const MountTable *t);

/* Returns true if filesystems of this type keep their data on a local block device. Only the name
 * decides. The types are ext2/3/4, xfs, btrfs, f2fs, vfat, exfat, ntfs3, erofs, squashfs, iso9660,
 * udf, bcachefs, jfs, reiserfs, nilfs2. Returns false for network filesystems, FUSE ("fuseblk"
 * included), autofs and pseudo filesystems. */
bool fstype_is_local_block(const char *fstype);

/* Returns true if filesystems of this type keep their data on a local block device
 * (fstype_is_local_block()) or in memory (tmpfs, ramfs, devtmpfs, overlay). */
bool fstype_is_local(const char *fstype);

/* Returns true if the path is the prefix or lies below the prefix. Trailing slashes of the prefix
 * do not count. */
bool path_is_below(const char *path, const char *prefix);

/* Returns the mount on which the path lies, or NULL. Looks nothing up: symbolic links are not
 * considered. The result is borrowed from the table. */
const Mount *mount_table_find(const MountTable *t, const char *path);

/* Returns true if looking the path up accesses only local filesystems: each mount on the way is one
 * of fstype_is_local(). A lookup on a network filesystem or FUSE may wait for its server without
 * limit. Symbolic links are not considered. */
bool mount_table_path_is_local(const MountTable *t, const char *path);

/* Returns true if names below the path may be stored encrypted: a mount on the way is eCryptfs or
 * FUSE, which gocryptfs and CryFS use. Also returns true if there is no mount on the way. */
bool mount_table_path_may_be_encrypted(const MountTable *t, const char *path);

/* Returns the id of the mounted btrfs subvolume, which is in the mount's options, or 0 on other
 * filesystems. In mountinfo all subvolumes of one btrfs have the same major:minor, but stat(2)
 * reports another number for each subvolume. */
uint64_t mount_subvolume_id(const Mount *m);

/* Returns true if `a` shows a larger part of the filesystem than `b`: the root of `a` is shorter,
 * or the roots are equally long and the target of `a` is shorter. */
bool mount_is_better(const Mount *a, const Mount *b);

/* Selects one mount for each local block-backed filesystem (and btrfs subvolume) at or below
 * `prefix` ("/" for all): the best by mount_is_better() of those that no other mount covers. *ret
 * contains the indexes of the selected mounts in `t`; the caller frees it. Returns 0 or -ENOMEM. */
int mount_table_select(const MountTable *t, const char *prefix, size_t **ret, size_t *ret_n);
