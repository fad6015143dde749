/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Limits the requests in flight of one worker to a fixed window. Pure. */

#include "base/macros.h"

typedef struct Pacer {
    uint64_t window_bytes;    /* limits of the requests in flight */
    uint32_t window_requests; /* at least 1 */
    uint64_t in_flight_bytes;
    uint32_t in_flight_requests;
} Pacer;

void pacer_init(Pacer *p, uint64_t window_bytes, uint32_t window_requests);

/* Returns true if a request of `bytes` bytes may be submitted now. With nothing in flight any
 * request may be submitted, so that the worker never stops. */
bool pacer_may_submit(const Pacer *p, uint64_t bytes);

/* Counts a submitted or a completed request. Each submitted request is completed once. */
void pacer_submitted(Pacer *p, uint64_t bytes);
void pacer_completed(Pacer *p, uint64_t bytes);
