/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Residency while a stage runs. What was read early in a long stage may be gone from the cache
 * again when it ends: memory was short, or somebody reclaims what is cold. So each file is looked
 * at shortly after it was opened, and once more later, and the metadata once a second; what was
 * seen at any of these times was brought in by the stage. Looking reads nothing in. */

#include "base/ranges.h"
#include "base/time-util.h"

struct Recorder;

/* A file is looked at so long after its opening: when its first reads are done, and when a slow
 * disk has caught up with it. */
#define SAMPLING_EARLY_USEC (USEC_PER_SEC / 2)
#define SAMPLING_LATE_USEC  (3 * USEC_PER_SEC)
/* Between two rounds. A boot that is over sooner was never sampled, and costs nothing. */
#define SAMPLING_ROUND_USEC USEC_PER_SEC
/* Metadata in a session, which may last for hours and is replayed from no pack: looking at a large
 * device takes milliseconds. */
#define SAMPLING_SESSION_USEC (60 * USEC_PER_SEC)
/* Files looked at before the event queue is read again, some milliseconds of work: the queue is
 * bounded, and a round over thousands of files would let it overflow. */
#define SAMPLING_LOOKS_MAX 200U
/* Time that one batch and one file of it may take. What is cut off is looked at in the late look,
 * or when the stage has ended. */
#define SAMPLING_BATCH_USEC (20 * USEC_PER_MSEC)
#define SAMPLING_FILE_USEC  (5 * USEC_PER_MSEC)

typedef struct Sampling {
    RangeSet *files;  /* object -> bytes seen resident */
    uint32_t *rounds; /* object -> the round that last looked at it */
    size_t n, allocated, allocated_rounds;
    size_t next[2]; /* events that the early and the late look have not come to */
    uint32_t round;
    bool unfinished; /* the round goes on after the next batch */
    usec_t last, last_metadata;
} Sampling;

void sampling_done(Sampling *s);

/* Makes a round if one is due; `now` is since the stage's start. 0 or -ENOMEM. */
int recorder_sample(struct Recorder *r, usec_t now);
