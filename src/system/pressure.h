/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Measures how long tasks of others than headstart wait for I/O.
 *
 * - With pressure stall information, two values are known for the time between two calls, and the
 *   larger one counts. The first is the time in which any task waited, less the time in which tasks
 *   of headstart's units waited, or of the group in which the replay of headstart-init runs. It is
 *   too small if both waited at the same time. The second is the time in which tasks of users
 *   waited (user.slice), where headstart has no task.
 * - Otherwise the busy time of the disks in /proc/diskstats counts, multiplied by the share of
 *   others in the bytes that were read. */

#include "base/macros.h"

#define PRESSURE_OWN_MAX 6

typedef struct Pressure {
    int root_fd; /* borrowed; AT_FDCWD means "/" */
    uint64_t last, last_own[PRESSURE_OWN_MAX];
    uint64_t last_early; /* of the replay of headstart-init, or of its group */
    bool replayed_early; /* that replay ran during the last call */
    uint64_t last_users; /* of user.slice */
    uint64_t last_bytes; /* read by all disks */
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
