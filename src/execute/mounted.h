/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the mounted filesystem of each volume of a pack and the facts on which the order of replay
 * depends. Reads /proc/self/mountinfo, /sys and superblocks. */

#include "execute/operations.h"

typedef struct MountedVolume {
    int root_fd;          /* of the mount point; -EBADF: not mounted */
    int device_fd;        /* of the block device; -EBADF: it cannot be read, or its size differs */
    uint32_t chunk_bytes; /* the maximum length of a request. Of a longer request the kernel reads
                             only max(read_ahead_kb, max_sectors_kb) and ignores the rest
                             (mm/readahead.c) */
    char *target;         /* mount point; NULL: not mounted */
} MountedVolume;

typedef struct MountedTable {
    MountedVolume *volumes; /* one entry per volume, in the order of the pack */
    VolumeFacts *facts;     /* one entry per volume, too */
    uint32_t n;
} MountedTable;

void mounted_table_done(MountedTable *t);
#define _cleanup_mounted_table_ _cleanup_(mounted_table_done)

/* Finds the mount of each volume of the pack. Only mounts of local block-backed types at or below
 * `root` count. A filesystem is recognised by its UUID (FS_IOC_GETFSUUID, or the superblock) and,
 * on btrfs, by the id of the subvolume. If several mounts have that UUID, the one at the mount
 * point that the pack names is taken, else the one that shows the largest part of the filesystem.
 * The caller passes *ret to mounted_table_done(). Returns 0, -ENOMEM, or the error of reading
 * mountinfo. */
int mounted_table_read(const Pack *p, const char *root, MountedTable *ret);
