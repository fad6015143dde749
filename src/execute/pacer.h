/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Limits the requests in flight of one worker. Pure.
 *
 * The window has a fixed size, except at the beginning of a sweep (pacer_restart()). A disk serves
 * the request that is nearest to its head. If the head stands behind the sweep and many requests
 * arrive at once, the disk therefore begins with the last of them and sweeps backwards, where each
 * request costs a rotation. So the first request of a sweep is alone: it brings the head to the
 * beginning. When it is completed, the window has its full size. */

#include "base/macros.h"

typedef struct Pacer {
    uint64_t window_bytes;     /* limits of the requests in flight */
    uint32_t window_requests;  /* at least 1 */
    uint32_t allowed_requests; /* window_requests; 1 at the beginning of a sweep */
    uint32_t n_before;         /* requests in flight that were submitted before the sweep */
    uint64_t in_flight_bytes;
    uint32_t in_flight_requests;
    uint64_t head; /* the place of the last request; UINT64_MAX: not known */
} Pacer;

void pacer_init(Pacer *p, uint64_t window_bytes, uint32_t window_requests);

/* Sets a smaller window. Requests in flight above it are completed before the next one. */
void pacer_limit(Pacer *p, uint64_t window_bytes, uint32_t window_requests);

/* Begins a sweep: the next request is submitted alone, after all requests in flight. */
void pacer_restart(Pacer *p);

/* Notes the place of the next request on the disk. If the request belongs to a sweep and lies
 * before the head, or at it, it begins a new sweep (pacer_restart()). */
void pacer_follow(Pacer *p, uint64_t place, bool sweeps);

/* Returns true from the beginning of a sweep until its first request is completed. */
bool pacer_is_restarting(const Pacer *p);

/* The largest size of the first request of a sweep. The kernel divides a larger one, and the disk
 * may begin with its last part. */
#define PACER_FIRST_BYTES (UINT64_C(128) * 1024)

/* Returns true if the next request is the first one of a sweep. */
bool pacer_begins_sweep(const Pacer *p);

/* Returns true if a request of `bytes` bytes may be submitted now. With nothing in flight any
 * request may be submitted, so that the worker never stops. */
bool pacer_may_submit(const Pacer *p, uint64_t bytes);

/* Counts a submitted or a completed request. Each submitted request is completed once. */
void pacer_submitted(Pacer *p, uint64_t bytes);
void pacer_completed(Pacer *p, uint64_t bytes);
