/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Measures how long tasks wait for I/O, with /proc/pressure/io. If that file cannot be read, the
 * busy time of disks in /proc/diskstats is used in its place. The waiting of headstart's own units
 * is subtracted. With /proc/diskstats, the time between two calls counts as zero if headstart's
 * units have read anything in it. */

#include "base/macros.h"

#define PRESSURE_OWN_MAX 6

typedef struct Pressure {
    int root_fd; /* borrowed; AT_FDCWD means "/" */
    uint64_t last, last_own[PRESSURE_OWN_MAX];
    bool begun;
    uint64_t stalled_usec; /* since the first call */
} Pressure;

/* Reads how long tasks have waited for I/O since the machine started ("some"), in microseconds,
 * headstart's own units included. Returns 0, or -ENOENT, -EOPNOTSUPP or another negative errno if
 * the kernel has no pressure stall information. */
int pressure_read_total(int root_fd, uint64_t *ret_stalled_usec);

/* Adds the time that tasks have waited since the last call. *ret_stalled_usec becomes the sum since
 * the first call, in microseconds; it never decreases. Returns 0, or -ENOENT or another negative
 * errno if the kernel has neither source. */
int pressure_read(Pressure *p, uint64_t *ret_stalled_usec);
