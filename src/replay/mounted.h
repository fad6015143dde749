/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the mounted filesystem of each segment of a pack. */

#include "pack/pack.h"

typedef struct MountedSegment {
    int root_fd;   /* of the mount point, O_PATH not: it is open for reading; -EBADF: not mounted */
    int device_fd; /* of the block device; -EBADF: not to be had, or of another size */
} MountedSegment;

/* One entry a segment, in the pack's order; only mounts at or below `root` count. A filesystem is
 * recognised by FS_IOC_GETFSUUID (Linux 6.9), else by the UUID in its superblock, and on btrfs by
 * the subvolume as well. The caller passes *ret to mounted_segments_free(). 0, -ENOMEM, or the error
 * of reading /proc/self/mountinfo. */
int mounted_segments_find(const Pack *p, const char *root, MountedSegment **ret);

MountedSegment *mounted_segments_free(MountedSegment *m, uint32_t n);
