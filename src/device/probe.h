/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Chooses the reads of a measurement: the next position, length and depth, given the samples so far
 * and the rest of the budget. Each run of `headstart plan` takes at most a third of the required
 * samples, so that the samples come from at least three different moments. Below, "plan" means such
 * a run. Pure. */

#include "base/ranges.h"
#include "device/samples.h"

/* The budget of all devices together in one plan. */
#define DEVICE_PROBE_TIME_MAX  (500 * USEC_PER_MSEC)
#define DEVICE_PROBE_BYTES_MAX (UINT64_C(64) * 1000 * 1000)

/* The number of plans that complete a measurement. */
#define DEVICE_PROBE_PLANS 3U

#define DEVICE_PROBE_BLOCK 4096U

/* The largest total length of the requests of a probe. */
#define DEVICE_PROBE_LENGTH_MAX (UINT32_C(8) << 20)

typedef struct DeviceProbeBudget {
    usec_t usec;
    uint64_t bytes;
} DeviceProbeBudget;

/* One device in one plan. */
typedef struct DeviceProbeRun {
    DeviceSamples *samples; /* of this plan and earlier ones; borrowed */
    uint32_t plan;          /* number of this plan */
    uint64_t size_bytes;
    const Range *places;      /* where the device has data, in rising order; borrowed */
    size_t n_places;          /* 0: not known; then every position may be read */
    uint64_t random;          /* seed, not 0 */
    DeviceProbeBudget budget; /* what is left of it */
    uint64_t head;            /* end of the last request */
} DeviceProbeRun;

typedef struct DeviceProbe {
    DeviceSampleKind kind;
    uint64_t distance;
    uint32_t length, requests, depth; /* as in DeviceSample */
    uint64_t lead; /* a block that is read first and gives no sample; UINT64_MAX: none */
    uint64_t offsets[DEVICE_SAMPLE_REQUESTS_MAX]; /* bytes, multiples of DEVICE_PROBE_BLOCK */
} DeviceProbe;

/* Returns true if the profile needs further samples. */
bool device_probe_wanted(const DeviceSamples *s);

/* Chooses the next probe. Returns false if this plan takes no further probe: the rest of the budget
 * is too small, the plan has its share, no sample is missing any more, or the device is too small.
 * Deterministic. */
bool device_probe_next(DeviceProbeRun *r, DeviceProbe *ret);

/* Adds the sample of a probe that took `usec`, and subtracts its time and bytes from the budget. */
void device_probe_done(DeviceProbeRun *r, const DeviceProbe *p, usec_t usec, bool zeroed);
