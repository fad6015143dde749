/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the mounted filesystem of each volume of a pack, and what the order of replay must know of
 * it: reads /proc/self/mountinfo, /sys/dev/block, superblocks. */

#include "replay/operations.h"

typedef struct MountedVolume {
    int root_fd;          /* of the mount point; -EBADF: not mounted */
    int device_fd;        /* of the block device; -EBADF: not to be had, or of another size */
    uint32_t chunk_bytes; /* the kernel reads so much of one readahead(2) call, and ignores the
                             rest: max(read_ahead_kb, max_sectors_kb) (mm/readahead.c) */
    char *target;         /* where it is mounted; NULL: not */
} MountedVolume;

typedef struct MountedTable {
    MountedVolume *volumes; /* one entry a volume, in the pack's order */
    VolumeFacts *facts;     /* the same */
    uint32_t n;
} MountedTable;

void mounted_table_done(MountedTable *t);
#define _cleanup_mounted_table_ _cleanup_(mounted_table_done)

/* Only mounts at or below `root` count, of local block-backed types. A filesystem is recognised by
 * FS_IOC_GETFSUUID (Linux 6.9), else by the UUID in its superblock, and on btrfs by the subvolume
 * as well; of several mounts of one filesystem the one that shows most of it is taken. The caller
 * passes *ret to mounted_table_done(). 0, -ENOMEM, or the error of reading mountinfo. */
int mounted_table_read(const Pack *p, const char *root, MountedTable *ret);
