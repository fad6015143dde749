/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Records which metadata blocks of each filesystem are in the page cache of its block device,
 * before, during and at the end of a stage. It covers ext2/3/4 only, because other filesystems keep
 * their metadata elsewhere.
 */

#include "observe/resident-ranges.h"
#include "volume/volume.h"

/* How long one snapshot of one volume may take: a device of 20 GB takes 2 ms. */
#define VOLUME_SNAPSHOT_USEC (300 * USEC_PER_MSEC)

typedef struct VolumeSnapshot {
    uint64_t st_dev;
    bool unknown;             /* the first snapshot failed */
    RangeSet resident_before; /* resident when the stage began */
    RangeSet seen_before;     /* resident when the stage began, or reclaimed before that */
    RangeSet resident_since;  /* resident at a sample of the stage */
} VolumeSnapshot;

/* Zeroed is valid. A volume without an item was mounted after the stage began, so none of its
 * blocks was resident before. */
typedef struct VolumeSnapshots {
    VolumeSnapshot *items;
    size_t n, allocated;
    bool no_cachestat; /* behave as if the kernel had no cachestat */
} VolumeSnapshots;

void volume_snapshots_done(VolumeSnapshots *s);

/* Call it when the stage begins. Drops earlier snapshots, and takes the first snapshot of each
 * volume. Returns 0 or -ENOMEM. */
int volume_snapshots_begin(VolumeSnapshots *s, const VolumeTable *t);

/* Adds what is resident now. It counts as read by the stage, even if it is reclaimed before the
 * stage ends. Returns 0 or -ENOMEM. */
int volume_snapshots_sample(VolumeSnapshots *s, const VolumeTable *t);

/* Forgets volumes that are no longer mounted, because another filesystem may get their st_dev. */
void volume_snapshots_keep(VolumeSnapshots *s, const VolumeTable *t);

/* Call it when the stage ends. Returns the metadata that the stage has read, as byte ranges of the
 * block device. It consists of the blocks that are resident now or were resident at a sample, but
 * not when the stage began, and of the blocks that were read and reclaimed since the stage began.
 * Returns 0; -EOPNOTSUPP (not ext2/3/4), -ENOSYS or -EPERM (no cachestat), -ETIME, -ENODATA (the
 * first snapshot failed), -ENOMEM, or the error of opening the device. */
int volume_snapshots_added(const VolumeSnapshots *s, const Volume *v, RangeSet *ret);
