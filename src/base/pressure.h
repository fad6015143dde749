/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much tasks wait for I/O: from /proc/pressure/io, or where the kernel has none, the time that
 * disks were busy, from /proc/diskstats. What headstart's own units wait for does not count;
 * without pressure, nothing does while they read. */

#include "base/macros.h"

#define PRESSURE_OWN_MAX 6

typedef struct Pressure {
    int root_fd; /* borrowed; AT_FDCWD: "/" */
    uint64_t last, last_own[PRESSURE_OWN_MAX];
    bool begun;
    uint64_t stalled_usec; /* since the first look */
} Pressure;

/* Adds what was waited for since the last look, and returns the sum, in microseconds: never less
 * than before. -ENOENT or another negative errno where neither is to be had. */
int pressure_read(Pressure *p, uint64_t *ret_stalled_usec);
