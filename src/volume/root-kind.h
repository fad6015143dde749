/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What kind of root filesystem this is, as far as it matters to who wonders what headstart does: on
 * a snapshot, or where updates bring a new tree, files change by being others. Pure. */

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

/* Of what is mounted on "/"; *ret_subvolume (borrowed from the table, or NULL): the snapshot.
 * _ROOT_KIND_INVALID if nothing is. */
RootKind root_kind(const MountTable *t, const char **ret_subvolume);

const char *root_kind_to_string(RootKind k); /* "plain", "snapshot", … */
