/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the prediction share. stage-sequence.c makes the reader, stage-replay.c lets it
 * run next to replay on one clock and one device, stage-time.c compares the policies. Pure. */

#include "plan/stage-time.h"

#include "plan/cost-model.h"

typedef struct StageDeviceState {
    const DeviceProfile *p;
    uint64_t size, head;
    unsigned depth;
    double slots[DEVICE_DEPTH_MAX]; /* when each slot is free */
    double link_free;
} StageDeviceState;

/* Makes the device idle, with its head at 0. */
void stage_device_init(StageDeviceState *d, const StageDevice *s);

/* Returns the slot that is free first. */
unsigned stage_device_slot(const StageDeviceState *d);

/* Returns when a request that arrives at the time `at` is done. */
double stage_device_serve(StageDeviceState *d, double at, uint64_t place, uint64_t length);

/* The reads of the stage in their order. */
typedef struct StageSequence {
    const StageFacts *f;
    StageRead *parts; /* f->reads, divided into parts of at most PART bytes */
    uint32_t *read;   /* part -> the read that it belongs to */
    size_t n;
    uint32_t *order; /* into parts, by first use */
    double *think;   /* computing time before each part; n + 1 values: the last is the time after
                        all parts */
    double overlap;
    double warm; /* sum of `think` */
} StageSequence;

/* Makes the reader of the stage. The caller passes *ret to stage_sequence_done(). `f` outlives
 * *ret. Returns 0 or -ENOMEM; *ret is untouched on failure. */
int stage_sequence_make(const StageFacts *f, StageSequence *ret);
void stage_sequence_done(StageSequence *s);

/* A part and the keys by which it is sorted; compared by stage_compare_keyed() for qsort(). */
typedef struct StageKeyed {
    uint64_t first, second;
    uint32_t part;
} StageKeyed;

int stage_compare_keyed(const void *a, const void *b);

/* Returns when a reader that begins at `at` has read a part that was not prefetched. */
double stage_read_cold(StageDeviceState *d, double at, const StageRead *r);

/* Returns the time of the stage without replay, or -1 if memory runs out. */
double stage_cold_usec(const StageSequence *s);

/* How replay reads. */
typedef struct StageReplay {
    bool metadata_only;
    usec_t bin;  /* width of a bin of first use; 0: in the order of place */
    usec_t hold; /* how long the stage is held; USEC_INFINITY: until everything is requested */
    uint32_t sweep_volume; /* in the order of place, the data of this volume that lie before */
    uint64_t sweep_start;  /* `sweep_start` come last */
} StageReplay;

/* Computes the stage's time with that replay. *ret_hold (may be NULL) is the time for which the
 * stage is held. Returns 0 or -ENOMEM; nothing is stored on failure. */
int stage_play(const StageSequence *s, const StageReplay *replay, usec_t *ret_usec,
               usec_t *ret_hold);
