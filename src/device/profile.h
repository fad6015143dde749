/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The parameters of a device on which the time of a request depends: measured on this device
 * (device/measure.h), or typical of its class. plan/cost-model.h computes times from them.
 * Pure. */

#include "base/macros.h"
#include "base/vocabulary.h"

/* The largest depth that a profile states. */
#define DEVICE_DEPTH_MAX 64U

typedef struct DeviceProfile {
    double rate_bytes_per_usec; /* of a sequential read; all requests share it */
    double fixed_usec;          /* latency of one request, without seek and transfer */
    unsigned depth;             /* number of requests whose latencies overlap, 1 to
                                   DEVICE_DEPTH_MAX */
    double seek_min_usec;       /* to the next track; 0: the device does not seek */
    double seek_max_usec;       /* across the whole device; 0: the device does not seek */
    double half_rotation_usec;
    uint64_t wait_bytes; /* longest gap for which the head waits instead of seeking */
} DeviceProfile;

/* Returns typical parameters of the class: the starting values until the device was measured.
 * tests/bench/diskmodel.c simulates the same devices. `unknown` counts as a hard disk, because this
 * assumption costs a faster device nothing. */
const DeviceProfile *device_profile_of_class(DeviceClass c);

/* How headstart-replay reads from a disk. */
typedef struct DeviceEngine {
    uint64_t window_bytes;    /* the most bytes in flight, of all threads together */
    unsigned n_workers;       /* threads */
    uint32_t window_requests; /* the most requests in flight, of all threads together */
    uint64_t beside_bytes;    /* the same limits while others read from the disk */
    uint32_t beside_requests;
} DeviceEngine;

/* Returns how a disk of the class is read. */
const DeviceEngine *device_engine_of_class(DeviceClass c);

/* Returns the class whose devices behave most like the profile, never `unknown`. The class in a
 * pack is that of plan_device_class() (plan/plan-cut.h). */
DeviceClass device_class_of_profile(const DeviceProfile *d);
