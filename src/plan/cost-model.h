/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The time of requests on a device with the given profile. The model has one head that moves: time
 * = fixed + seek + half a rotation + bytes / rate. The seek time grows with the square root of the
 * distance (Ruemmler and Wilkes, An introduction to disk drive modeling, 1994). If the next
 * request begins at most wait_bytes ahead of the head, the head can wait for it instead of
 * seeking. Waiting takes the transfer time of the gap. The model takes the shorter of the two
 * times.
 * tests/bench/diskmodel.c simulates the same disk. Pure. */

#include "base/ranges.h"
#include "base/time-util.h"
#include "device/profile.h"

/* Returns the time to move from byte `from` to byte `to` of a device of `size` bytes, without
 * transfer. */
double cost_move_usec(const DeviceProfile *d, uint64_t from, uint64_t to, uint64_t size);

/* Returns the mean of cost_move_usec() between two places drawn at random. */
double cost_mean_move_usec(const DeviceProfile *d);

/* Returns the time until the last of n requests is done. The requests are ranges of the device. All
 * are submitted at once, in this order, with the head at 0. The fixed latencies of up to `depth`
 * requests overlap; all requests share the rate. */
double cost_sequence_usec(const DeviceProfile *d, const Range *requests, size_t n, uint64_t size);

/* Removes the last `window_bytes` bytes of a sequence. If at most that many bytes are in flight,
 * the rest must be done before the last byte of the sequence can be requested. Returns the number
 * of requests that remain, of which the last may have become shorter. */
size_t cost_sequence_cut(Range *requests, size_t n, uint64_t window_bytes);

/* Returns the largest gap that is cheaper to read than to skip with a second request; every smaller
 * gap is cheaper to read, too. It is the gap where gap / rate * (1 + memory_price) = fixed / depth
 * + move. `memory_price` is the cost of an unneeded byte in memory, in units of the transfer of one
 * byte. It is small for metadata (METADATA_GAP_PRICE in plan-compile.c). It is 1 for data, where
 * each such byte may evict a byte that must be read again. */
uint64_t cost_break_even_gap(const DeviceProfile *d, uint64_t size, double memory_price);

/* Returns the time per byte that a reader saves if `bytes` bytes, which lie in `n_places` places of
 * the device, are in memory already. Returns 0 if `bytes` is 0. */
double cost_saved_usec_per_byte(const DeviceProfile *d, uint64_t bytes, uint64_t n_places);

/* Returns how many bytes the device transfers in the time that a request at a random position takes
 * on average before its transfer: fixed / depth + mean move. */
uint64_t cost_seek_bytes(const DeviceProfile *d);
