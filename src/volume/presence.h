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

/* Looks up `root` + `path` with volume_open_path(). If the path leads through a symlink, lies below
 * an automount, or is on no volume of the table, the result is PRESENCE_UNKNOWN.
 * Let D be the directory that should contain the first missing component. If D is /home, the result
 * is PRESENCE_UNKNOWN: a missing home may be on a disk, in a container file (systemd-homed) or on a
 * server that is not available now. If D is another directory, the file counts as gone if an object
 * that is no directory has replaced D, or if D
 * - lies on a volume of the table,
 * - is not encrypted by its filesystem (fscrypt shows other names without the key), and
 * - is not empty (a mount point without its filesystem is empty).
 *
 * If the result is PRESENCE_GONE, *ret_above is the length of the part of `path` that exists,
 * without a slash at its end (0: the root itself). */
Presence presence_find(const VolumeTable *volumes, const char *root, const char *path,
                       size_t *ret_above);
