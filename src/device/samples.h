/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Samples: the times of reads that a measurement (device/measure.h) took of a device. They are kept
 * over several runs of `headstart plan` (state/device-store.h). device/estimate.h computes the
 * profile from them. Pure. */

#include "base/macros.h"
#include "base/time-util.h"
#include "base/vocabulary.h"

typedef enum DeviceSampleKind {
    DEVICE_SAMPLE_STREAM, /* consecutive requests, all in flight at once, directly after a block
                             that was read before */
    DEVICE_SAMPLE_FAR,  /* one request, `distance` bytes before or after the end of the previous one
                         */
    DEVICE_SAMPLE_NEAR, /* one request, `distance` bytes after the end of the previous one */
    DEVICE_SAMPLE_PARALLEL, /* requests at random positions, `depth` in flight */
    _DEVICE_SAMPLE_KIND_MAX,
    _DEVICE_SAMPLE_KIND_INVALID = -EINVAL,
} DeviceSampleKind;

const char *device_sample_kind_to_string(DeviceSampleKind k);

typedef struct DeviceSample {
    uint64_t distance; /* bytes; 0 except for FAR and NEAR */
    uint32_t length;   /* bytes of each request */
    uint32_t requests;
    uint32_t depth;
    uint32_t plan; /* the run of `headstart plan` that took it: its number among those that measured
                      the device */
    usec_t usec;   /* until the last request was done */
    bool zeroed;   /* the device returned only zeros, perhaps without reading: the range may never
                      have been written, or may have been discarded */
} DeviceSample;

/* The times of one undisturbed sweep of replay: the time that the profile of the samples predicts,
 * and the measured time. */
typedef struct DeviceSweep {
    usec_t predicted_usec;
    usec_t measured_usec;
} DeviceSweep;

/* A sweep counts if at least this share of the pack was read, and if `gate` held the boot for at
 * least this share of its time. */
#define DEVICE_SWEEP_SHARE_MIN 0.9

/* The facts about one replay of a pack in the report of headstart-replay. */
typedef struct DeviceSweepReport {
    Policy policy;
    bool done;     /* it came to the end of the pack */
    bool resident; /* everything became resident */
    usec_t start_realtime;
    usec_t duration_usec;
    usec_t held_usec; /* with `gate`: how long the boot waited; 0: it did not wait */
    uint64_t data_bytes;
} DeviceSweepReport;

/* Returns true if the time of the sweep can be compared with the time that the profile predicts:
 * the pack of `pack_created` (wall clock) and `pack_data_bytes` was replayed, nearly all of it was
 * read, and hardly anything else used the disk meanwhile. Under `gate`, the boot must have waited
 * during nearly the whole sweep, because the boot reads as well once its hold has ended. Under
 * `idle`, everything must have become resident. Under other policies others read at the same time.
 */
bool device_sweep_counts(const DeviceSweepReport *r, usec_t pack_created, uint64_t pack_data_bytes);

/* The number of sweeps that are kept. */
#define DEVICE_SWEEPS_MAX 8U

/* Limits of a sample. They apply to stored samples, too. */
#define DEVICE_SAMPLE_LENGTH_MAX   (1U << 20)
#define DEVICE_SAMPLE_REQUESTS_MAX 256U
#define DEVICE_SAMPLE_USEC_MAX     (60 * USEC_PER_SEC)

/* The number of samples of one kind that are kept. */
#define DEVICE_SAMPLES_MAX 128U

typedef struct DeviceSamples {
    DeviceSample items[_DEVICE_SAMPLE_KIND_MAX][DEVICE_SAMPLES_MAX]; /* the oldest first */
    unsigned n[_DEVICE_SAMPLE_KIND_MAX];
} DeviceSamples;

/* Returns false if a limit is exceeded or the fields contradict the kind. */
bool device_sample_is_valid(DeviceSampleKind k, const DeviceSample *s);

/* Adds a valid sample. If the kind is full, the oldest sample is dropped. */
void device_samples_add(DeviceSamples *s, DeviceSampleKind k, const DeviceSample *sample);
