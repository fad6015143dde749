/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Measures a block device by reading it (O_DIRECT, asynchronous I/O, idle I/O priority): it caches
 * nothing and writes nothing. */

#include "device/probe.h"

/* How long a hanging read may delay the caller beyond the budget of the run. */
#define DEVICE_MEASURE_HANG_MAX (500 * USEC_PER_MSEC)

/* Runs the probes that device_probe_next() chooses and adds their samples to the run. `block_dev`
 * is the device's number. A child process reads. The caller waits for the child at most for the
 * run's budget plus DEVICE_MEASURE_HANG_MAX, and then kills it. A child that still waits for the
 * disk is not reaped. Samples that arrived until then count. Returns the number of new samples, 0
 * if no probe was chosen, or a negative errno if an error left no sample: -ENXIO (no such device),
 * -EACCES, -EINVAL (the device has no O_DIRECT), -ENOSYS (the kernel has no asynchronous I/O),
 * -EIO, -ETIMEDOUT (no read ended in time), or another error of open(2), fork(2), pipe(2) and
 * io_submit(2). */
int device_measure(uint64_t block_dev, DeviceProbeRun *r);
