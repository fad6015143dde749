/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Computes the profile of a device from samples. Pure and deterministic.
 *
 * Every parameter is a median or another quantile, so that single slow reads (other load) and
 * single fast reads (a cache below the kernel) have little effect:
 *
 * - Rate: the upper quartile of the rates of those STREAM samples that are at least half as long as
 *   the longest one. The latency of one request is subtracted from the time of a sample, or the
 *   latencies of all its requests if the device serves one request at a time.
 * - Seeks slowly: yes, if the median of FAR is 2 to 25 ms and at least four times the lower
 *   quartile of NEAR at distance 0, and that quartile is less than half of the lowest decile of
 *   FAR: a mechanical disk reads the next block from its buffer. No, if the median of FAR is less
 *   than 2 ms, or if it is at most 25 ms and the lowest deciles of NEAR and FAR differ by at most a
 *   factor of 2, as across a network. Any other result leaves the question open.
 * - Latency: the lowest decile of NEAR at distance 0 if the device seeks slowly, else the lower
 *   quartile of FAR, without the transfer of the block. A busy processor can only lengthen a
 *   measured time, and lengthens most the times of reads that are made one at a time. Low quantiles
 *   leave out the lengthened times.
 * - Seek time: the line through FAR over the root of the distance (Theil-Sen: the median of the
 *   slopes of all pairs; Sen, Estimates of the regression coefficient based on Kendall's tau,
 *   1968). The spread around the line measures half a rotation. Only the sum of shortest seek and
 *   half rotation matters to the cost model.
 * - wait_bytes: the longest gap of NEAR whose reads take less than three quarters of the time of
 *   the shortest seek and half a rotation.
 * - Slow first reads: the device does not seek slowly, and an eighth of FAR takes longer than
 *   DEVICE_SLOW_FIRST_USEC. A cloud provider loads a volume from a snapshot, each part when it is
 *   first read. Few samples show this, because the later ones read parts that are loaded.
 * - Depth: the product of the highest throughput of PARALLEL and the latency. By Little's law this
 *   is the smallest depth with full throughput.
 *
 * Samples that the device answered with zeros count only if there are too few others. There are two
 * exceptions. The question about slow first reads uses all samples. The question whether the device
 * seeks slowly leaves zeros out only if they took less than half of the time of the others, because
 * a disk that seeks takes as long for a free block as for any other. */

#include "device/profile.h"
#include "device/samples.h"

typedef struct DeviceEstimate {
    DeviceProfile profile; /* a parameter that was not measured is that of `start` */
    bool rate_measured, latency_measured, depth_measured, seek_measured;
    bool seeks_slowly;
    bool seeks_clear;      /* the samples decide seeks_slowly; if false, `start` decides it */
    bool slow_first_reads; /* a first read of a part of the device takes much longer than later
                              reads */
} DeviceEstimate;

/* The smallest number of samples for a parameter. */
#define DEVICE_STREAM_MIN 1U
#define DEVICE_FAR_MIN    8U
#define DEVICE_NEAR_MIN   4U

#define DEVICE_SLOW_FIRST_USEC 10000.0
#define DEVICE_SLOW_FIRST_PART 0.125

/* Returns 1 if the device seeks slowly, 0 if not, -ENODATA if the samples do not decide it. */
int device_seeks_slowly(const DeviceSamples *s);

/* The smallest number of sweeps of replay that correct a profile. */
#define DEVICE_SWEEPS_MIN 3U

/* Corrects the profile by the measured times of sweeps. If the median of measured over predicted
 * time is not within 0.8 to 1.25, every time of the profile is multiplied by this median, and the
 * rate is divided by it. The median is limited to 0.5 to 2. Fewer than DEVICE_SWEEPS_MIN sweeps
 * change nothing. */
void device_refine(DeviceProfile *d, const DeviceSweep *sweeps, unsigned n);

/* Estimates the profile of a device from its samples. `size_bytes` is the size of the device,
 * `start` the profile before any measurement. */
void device_estimate(const DeviceSamples *s, uint64_t size_bytes, const DeviceProfile *start,
                     DeviceEstimate *ret);
