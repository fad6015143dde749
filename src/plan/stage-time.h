/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Predicts how long a stage takes under each policy, and chooses the policy with the least
 * predicted time. Pure.
 *
 * The stage is one reader. It computes for a while, reads a part of a range, computes, and so on,
 * in the order of first use. Its computing time is the recorded time without the recorded wait for
 * I/O. A part that replay has read takes no time. A part that replay has requested takes the time
 * until it is read. The device serves any other part (plan/cost-model.h), at most READ_AHEAD bytes
 * at a time. A stage has several processes, whose waits overlap. `overlap` is the time for which
 * the stage really waits, as a share of the sum of the times of its reads. It is computed from the
 * recorded wait.
 *
 * Replay is one stream for each device. The device serves requests in the order in which they
 * arrive. Next to the reader, replay keeps several requests in the queue of the device. Replay
 * reads metadata in the order of place, opens the files, and reads data by bins of first use, each
 * bin in the order of place (StageRead.advance: data come along with an earlier bin). The reader
 * begins after `hold`, or earlier if replay has submitted its last request by then. At that moment
 * a window of requests is still in flight (device_engine_of_class()). From then on the window is
 * that for a stage next to replay. On a disk that seeks, a whole sweep may begin in the middle
 * of the data. The prediction tries several places, and takes the one with which the stage ends
 * first. */

#include "base/vocabulary.h"
#include "device/profile.h"

#include "base/time-util.h"

typedef struct StageDevice {
    const DeviceProfile *profile;
    uint64_t size_bytes;
    const DeviceEngine *engine; /* NULL: replay keeps one request in flight */
} StageDevice;

/* A range that the pack contains, or the part of it that is not in memory. */
typedef struct StageRead {
    uint32_t device; /* index into StageFacts.devices */
    uint32_t volume; /* of the pack */
    bool metadata;
    uint64_t place, length; /* bytes on the device; PHYSICAL_UNKNOWN: the place is not known */
    usec_t need;            /* first use since the stage's start; USEC_INFINITY: unknown */
    usec_t advance;         /* PlacedRange.advance */
    double probability;
    bool alone; /* no request joins it with a neighbour: btrfs submits each file's reads alone */
} StageRead;

typedef struct StageFacts {
    const StageDevice *devices;
    size_t n_devices;
    const StageRead *reads;
    size_t n_reads;
    uint64_t n_opens; /* files that replay opens */
    bool opens_first; /* also where it reads metadata, replay opens all files before it reads data
                       */
    uint64_t pack_bytes; /* size of the pack, which replay reads first */
    usec_t ready;        /* how long the stage takes without replay, as measured; 0: unknown */
    usec_t stalled;      /* how long tasks waited for I/O in this time */
    bool waits;      /* a login: the stage begins when the user logs in, so replay reads before the
                        stage, at idle priority, and cannot hold the stage */
    usec_t deadline; /* longest hold */
    bool start; /* the start of an application: headstartd replays, so that replay begins at once,
                   cannot hold the stage, and only `concurrent` is predicted */
    usec_t bin; /* of a start: width of a bin of first use; 0: order of first use */
} StageFacts;

typedef struct StagePrediction {
    usec_t usec[_POLICY_MAX]; /* predicted time of the stage; USEC_INFINITY: not predicted */
    usec_t hold;              /* of `gate`: how long the stage is held */
    bool gate_whole;          /* of `gate`: the stage is held until replay has requested all */
    uint32_t sweep_volume;    /* with gate_whole: the sweep over the data of this volume begins at
                                 the place `sweep_start`, and ends with the data before it */
    uint64_t sweep_start;
    usec_t concurrent_bin, gate_bin; /* width of a bin of first use; 0: order of place */
    Policy best;
    PolicyReason reason;
} StagePrediction;

/* Predicts all policies that suit the stage and chooses. For a stage that was measured, and for the
 * start of an application, `off` is chosen if the best policy gains less than STAGE_TIME_MARGIN of
 * the stage's time, or less than STAGE_TIME_GAIN_MIN. On a disk that does not seek, `gate` is
 * chosen only if it gains more than an eighth of the computing time over `concurrent`. Returns 0 or
 * -ENOMEM; *ret is untouched on failure. */
int stage_time_predict(const StageFacts *f, StagePrediction *ret);

#define STAGE_TIME_MARGIN   0.05
#define STAGE_TIME_GAIN_MIN (20 * USEC_PER_MSEC)

/* Assumptions for a stage that was never measured: the CPU time for each file that the stage opens,
 * `overlap` on a device that serves one request at a time, and `overlap` on other devices. For the
 * boots of the bench, 0.2 ms, 0.9 and 0.65 were measured. */
#define STAGE_TIME_OPEN_USEC 200
/* A stage also waits for what no replay shortens: for a server, or until data is written. Waits
 * that are longer than this for each read, beyond the device's own time, do not count as waits for
 * reads. The first read of a part of a volume that a cloud provider loads lazily takes some tens of
 * ms. */
#define STAGE_TIME_READ_USEC_MAX  100000
#define STAGE_TIME_OVERLAP_SERIAL 0.9
#define STAGE_TIME_OVERLAP_DEEP   0.65
