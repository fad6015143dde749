/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the facts on which the window of the prefetch thread depends (execute/read-window.h).
 * Applications do not report what they use. The number of bytes that have arrived therefore counts
 * as the position of the reader, and the window limits the bytes in flight. One thread uses this.
 */

#include "execute/read-window.h"
#include "system/pressure.h"

typedef struct PrefetchPace {
    int root_fd; /* of /proc and /sys; AT_FDCWD means "/" */
    Pressure pressure;
    ReadWindow window;
    ReadSnapshot facts;
    usec_t facts_due, heat_due;
    uint64_t stalled_usec;
    uint64_t device; /* that `inflight` belongs to */
    char *inflight;  /* path of the queue's counters; NULL: unknown */
} PrefetchPace;

void prefetch_pace_done(PrefetchPace *p);

/* Forgets the window and all facts: the thread has read nothing for a while. */
void prefetch_pace_begin(PrefetchPace *p);

/* Returns the window in bytes, after `arrived` bytes since prefetch_pace_begin(), with own_requests
 * requests in flight. The device has the number `device`; a filesystem without a block device has
 * no queue. */
uint64_t prefetch_pace_update(PrefetchPace *p, uint64_t device, uint64_t arrived,
                              uint32_t own_requests);

/* Returns true if the machine was too hot or short of memory at the last check since
 * prefetch_pace_begin(). Updates check the temperature once a second, and memory ten times. */
bool prefetch_pace_must_stop(const PrefetchPace *p);
