/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The price of ranges of one file: the time that a reader saves if replay has read them, and the
 * time that they add to the sweep of replay. Pure. */

#include "base/ranges.h"
#include "device/profile.h"

typedef struct Price {
    double saved_usec; /* time that a reader needs for the ranges without replay: one request after
                          the other, each at a random position */
    double cost_usec;  /* time that the ranges add to the sweep */
} Price;

/* Computes the price of the `n` ranges of a file on the device with this profile and size. `sweep`
 * has the `n_sweep` other ranges that replay reads from this device, in the order of replay. Both
 * arrays hold places on the device. `ranges` is in physical order. Each range is inserted into the
 * sweep before the first range of `sweep` that lies behind it. The cost is the difference of the
 * two times that cost_sequence_usec() predicts. Returns 0, or -ENOMEM with *ret untouched. */
int price_of_placed_ranges(const DeviceProfile *d, uint64_t size, const Range *sweep,
                           size_t n_sweep, const Range *ranges, size_t n, Price *ret);

/* Computes the price of `n` ranges of `bytes` bytes in all whose places are not known. The sweep
 * then saves nothing: each range costs a request at a random position, too. */
Price price_of_unplaced_ranges(const DeviceProfile *d, uint64_t bytes, size_t n);
