/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Is a file gone, or is only what it lies on not there? */

#include "volume/volume.h"

typedef enum Presence {
    PRESENCE_THERE,
    PRESENCE_GONE,    /* where it was is mounted and can be read, and it is not there */
    PRESENCE_UNKNOWN, /* that cannot be told */
    _PRESENCE_MAX,
    _PRESENCE_INVALID = -EINVAL,
} Presence;

/* Looks for `root` + `path`. What is missing counts as gone only if the directory in which the
 * first missing component should be
 * - lies on a volume of the table, not below an automount,
 * - is not encrypted by its filesystem (fscrypt: without the key other names are shown),
 * - is not empty, as a mount point without its filesystem is, and
 * - is not /home: a home that is not there may be on a disk, in a container file (systemd-homed) or
 *   on a server that is not there now.
 * *ret_above: the length of the part of `path` that is there, without a slash at its end (0: the
 * root itself), if it is not PRESENCE_THERE. */
Presence presence_look(const VolumeTable *volumes, const char *root, const char *path,
                       size_t *ret_above);
