/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a request costs on a kind of device. One head that moves: cost = fixed + seek + half a
 * rotation + bytes / rate; the seek grows with the square root of the distance (Ruemmler and
 * Wilkes, An introduction to disk drive modeling, 1994); over a short gap ahead the head may as
 * well wait: it costs at most the gap's transfer time. tests/bench/diskmodel.c is a disk that
 * behaves so. Pure. */

#include "base/time-util.h"
#include "base/vocabulary.h"

typedef struct CostModel {
    double rate_bytes_per_usec;
    double seek_min_usec; /* to the next track */
    double seek_max_usec; /* across the whole device */
    double half_rotation_usec;
    double fixed_usec;   /* per request */
    uint64_t wait_bytes; /* over a gap ahead of up to so many the head waits instead of seeking */
    unsigned queue;      /* requests the device serves at once, at most COST_QUEUE_MAX */
} CostModel;

#define COST_QUEUE_MAX 64U

typedef struct CostRequest {
    uint64_t offset; /* bytes on the device */
    uint64_t length;
} CostRequest;

/* Typical parameters of the class (docs/architecture.md says where they were taken). `unknown` is
 * taken for a hard disk: wrong on a faster device, it costs nothing there. */
const CostModel *cost_model_of(DeviceClass c);

/* Cost of moving from byte `from` to byte `to` of a device of `size` bytes, without transfer. */
double cost_move_usec(const CostModel *m, uint64_t from, uint64_t to, uint64_t size);

/* Time until the last of n requests is served, given in this order all at once, the head at 0. A
 * device with a queue passes the fixed latencies of `queue` requests side by side; all share one
 * link of its rate. */
double cost_sequence_usec(const CostModel *m, const CostRequest *requests, size_t n, uint64_t size);

/* The largest gap ahead (with every smaller one) that is better read through than skipped with a
 * request of its own: where gap / rate * (1 + memory_price) = fixed + move. `memory_price` is what
 * a byte brought in for nothing costs, in transfers of a byte: 0 for what is tiny (metadata), 1
 * where each such byte may push one out that is read again (data). Derived, not a constant of its
 * own. */
uint64_t cost_break_even_gap(const CostModel *m, uint64_t size, double memory_price);

/* Time that a reader is spared per byte if `bytes`, which lie in `pieces` places of the device, are
 * in memory already. 0 if there are none. */
double cost_saved_usec_per_byte(const CostModel *m, uint64_t bytes, uint64_t pieces);

/* Bytes transferred in the time that a request somewhere else costs before its transfer, on
 * average. */
uint64_t cost_seek_bytes(const CostModel *m);
