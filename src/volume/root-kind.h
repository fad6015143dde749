/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Determines the kind of the root filesystem for `headstart status`. On a snapshot or an image,
 * updates give files other inodes, and what was learned may not match. Pure. */

#include "volume/mountinfo.h"

typedef enum RootKind {
    ROOT_KIND_PLAIN,
    ROOT_KIND_SNAPSHOT, /* btrfs: a subvolume below .snapshots (snapper), timeshift-btrfs or
                           @snapshots */
    ROOT_KIND_OVERLAY,  /* overlayfs: overlayroot, live media, some containers */
    ROOT_KIND_IMAGE,    /* squashfs, erofs: read-only by nature */
    _ROOT_KIND_MAX,
    _ROOT_KIND_INVALID = -EINVAL,
} RootKind;

/* Returns the kind of the filesystem that is mounted on "/", or _ROOT_KIND_INVALID if the table has
 * no mount on "/". *ret_subvolume becomes the path of the snapshot, which is borrowed from the
 * table, or NULL if the root is no snapshot. */
RootKind root_kind(const MountTable *t, const char **ret_subvolume);

const char *root_kind_to_string(RootKind k); /* "plain", "snapshot", … */
