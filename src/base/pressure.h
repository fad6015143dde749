/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How long tasks wait for I/O: by /proc/pressure/io, or, where the kernel has none, the time that
 * disks were busy, by /proc/diskstats. The waiting of headstart's own units does not count; without
 * pressure stall information, no waiting counts while they read. */

#include "base/macros.h"

#define PRESSURE_OWN_MAX 6

typedef struct Pressure {
    int root_fd; /* borrowed; AT_FDCWD: "/" */
    uint64_t last, last_own[PRESSURE_OWN_MAX];
    bool begun;
    uint64_t stalled_usec; /* since the first call */
} Pressure;

/* Adds the time that tasks waited since the last call, and returns the sum in microseconds, which
 * never falls. -ENOENT or another negative errno where the kernel has neither source. */
int pressure_read(Pressure *p, uint64_t *ret_stalled_usec);
