/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How long a disk takes to read somewhere else: no flag says whether there is a spindle (virtio and
 * loop devices always claim one), its own times do. */

#include "base/time-util.h"
#include "volume/volume.h"

/* Lower quartiles of the times of single uncached reads of 4 KiB: what else the machine has to do
 * makes some reads slow, but none fast. */
typedef struct SeekTimes {
    usec_t elsewhere; /* at a random place */
    usec_t next;      /* of what follows that place */
    unsigned n;       /* places tried */
} SeekTimes;

#define SEEKS_MAX      16U                   /* places at most */
#define SEEKS_TIME_MAX (500 * USEC_PER_MSEC) /* no further place after that */

/* Reads the volume's block device, about 0.2 s long on a hard disk, O_DIRECT: nothing is cached,
 * nothing is written. 0, or a negative errno: -ENXIO (no device, or too small), -EACCES, -EINVAL
 * (no O_DIRECT), -EIO and what else open(2) and read(2) return. */
int seeks_measure(const Volume *v, SeekTimes *ret);

typedef enum Spindle {
    SPINDLE_NO,
    SPINDLE_YES,
    SPINDLE_UNCLEAR,
} Spindle;

/* Pure: a disk with a spindle takes several milliseconds to anywhere else, and nearly nothing for
 * what comes next. Too few places, or a disk for which everything takes long (it has others to
 * serve, or is far away), say nothing. */
Spindle seeks_tell_spindle(const SeekTimes *t);
