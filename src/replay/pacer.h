/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much may be asked of a device before the oldest of it must have arrived. One pacer a stream.
 * Pure. This one is a fixed window; the one that follows the device's queue and the machine's
 * pressure takes its place behind the same functions. */

#include "base/macros.h"

typedef struct Pacer {
    uint64_t window_bytes;    /* at most so much under way ... */
    uint32_t window_requests; /* ... in at most so many pieces */
    uint64_t in_flight_bytes;
    uint32_t in_flight_requests;
} Pacer;

void pacer_init(Pacer *p, uint64_t window_bytes, uint32_t window_requests);

/* True if a request of so many bytes may go out now. With nothing under way one always may, however
 * large: a pacer never stands still. */
bool pacer_may_submit(const Pacer *p, uint64_t bytes);

/* A request went out; a request arrived. Every one submitted is completed once. */
void pacer_submitted(Pacer *p, uint64_t bytes);
void pacer_completed(Pacer *p, uint64_t bytes);
