/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Measures whether a disk seeks slowly. No kernel flag tells: virtio and loop devices always claim
 * to rotate. The times of single reads do. */

#include "base/time-util.h"
#include "volume/volume.h"

/* Lower quartiles of the times of single uncached reads of one block: other load makes some reads
 * slow, but none fast. */
typedef struct SeekTimes {
    usec_t elsewhere; /* at a random place */
    usec_t next;      /* of the block that follows it */
    unsigned n;       /* random places that were read */
} SeekTimes;

#define SEEKS_MAX      16U                   /* at most so many places are read */
#define SEEKS_TIME_MAX (500 * USEC_PER_MSEC) /* then no further place is read */

/* Reads the volume's block device with O_DIRECT for about 0.2 s on a hard disk. Caches nothing and
 * writes nothing. 0, -ENXIO (no device, or too small), -EACCES, -EINVAL (no O_DIRECT), -EIO,
 * -EAGAIN (not one place was read in time), or another negative errno of open(2) and pread(2). */
int seeks_measure(const Volume *v, SeekTimes *ret);

typedef enum SeeksSlowly {
    SEEKS_SLOWLY_NO,
    SEEKS_SLOWLY_YES,
    SEEKS_SLOWLY_UNCLEAR,
} SeeksSlowly;

/* Pure. A mechanical disk takes several milliseconds for a random place and almost no time for the
 * block that follows. Unclear: too few places were read, or both take long (a busy or remote
 * disk). */
SeeksSlowly seeks_decide(const SeekTimes *t);
