/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Distinguishes a deleted file from a file whose filesystem is not mounted or whose home is
 * locked. */

#include "volume/volume.h"

typedef enum Presence {
    PRESENCE_THERE,
    PRESENCE_GONE,    /* the file was deleted: its filesystem is mounted and can be read */
    PRESENCE_UNKNOWN, /* nothing can be concluded */
    _PRESENCE_MAX,
    _PRESENCE_INVALID = -EINVAL,
} Presence;

/* Looks up `root` + `path`. Symlinks are not followed, because a symlink can lead to an automount.
 * If the path leads through a symlink or lies below an automount, the result is PRESENCE_UNKNOWN.
 * Let D be the directory that should contain the first missing component. A missing file counts as
 * gone if D was replaced by another object, or if D
 * - lies on a volume of the table and not below an automount,
 * - is not encrypted by its filesystem (fscrypt shows other names without the key),
 * - is not empty (a mount point without its filesystem is empty), and
 * - is not /home: a missing home may be on a disk, in a container file (systemd-homed) or on a
 * server that is not available now.
 *
 * Unless the result is PRESENCE_THERE, *ret_above is the length of the part of `path` that exists,
 * without a slash at its end (0: the root itself). */
Presence presence_find(const VolumeTable *volumes, const char *root, const char *path,
                       size_t *ret_above);
