/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/cost-model.h"

#include "base/macros.h"

#include <math.h>

double cost_move_usec(const DeviceProfile *d, uint64_t from, uint64_t to, uint64_t size)
{
    uint64_t distance = from < to ? to - from : from - to;
    double seek, wait;

    if (distance == 0 || d->seek_max_usec <= 0)
        return 0;
    seek = d->seek_min_usec +
           (d->seek_max_usec - d->seek_min_usec) *
                   sqrt(fmin((double)distance / (double)MAX(size, (uint64_t)1), 1));
    seek += d->half_rotation_usec;
    /* A position shortly ahead on the same track reaches the head without a seek. */
    wait = to > from && distance <= d->wait_bytes ? (double)distance / d->rate_bytes_per_usec
                                                  : INFINITY;
    return fmin(seek, wait);
}

double cost_sequence_usec(const DeviceProfile *d, const Range *requests, size_t n, uint64_t size)
{
    double finish[DEVICE_DEPTH_MAX] = {0}, link_free = 0;
    unsigned depth = MAX(MIN(d->depth, DEVICE_DEPTH_MAX), 1U);
    uint64_t head = 0;

    for (size_t i = 0; i < n; i++) {
        /* The device accepts a request when the request `depth` positions earlier in the list is
         * done. */
        double latency = finish[i % depth] + d->fixed_usec +
                         cost_move_usec(d, head, requests[i].offset, size);

        link_free = fmax(latency, link_free) + (double)requests[i].length / d->rate_bytes_per_usec;
        finish[i % depth] = link_free;
        head = requests[i].offset + requests[i].length;
    }
    return link_free;
}

size_t cost_sequence_cut(Range *requests, size_t n, uint64_t window_bytes)
{
    while (n > 0 && requests[n - 1].length <= window_bytes)
        window_bytes -= requests[--n].length;
    if (n > 0)
        requests[n - 1].length -= window_bytes;
    return n;
}

double cost_mean_move_usec(const DeviceProfile *d)
{
    /* On a device of length 1, the square root of the distance between two random places is 8/15 on
     * average. */
    return d->seek_max_usec <= 0 ? 0
                                 : d->seek_min_usec + d->half_rotation_usec +
                                           (d->seek_max_usec - d->seek_min_usec) * 8 / 15;
}

uint64_t cost_seek_bytes(const DeviceProfile *d)
{
    double fixed = d->fixed_usec / MAX(d->depth, 1U);

    return (uint64_t)((fixed + cost_mean_move_usec(d)) * d->rate_bytes_per_usec);
}

static bool read_through_is_cheaper(const DeviceProfile *d, uint64_t gap, uint64_t size,
                                    double memory_price)
{
    /* Requests that the device serves in parallel share the fixed part of the time. */
    double fixed = d->fixed_usec / MAX(d->depth, 1U);

    return (double)gap / d->rate_bytes_per_usec * (1 + memory_price) <
           fixed + cost_move_usec(d, 0, gap, size);
}

uint64_t cost_break_even_gap(const DeviceProfile *d, uint64_t size, double memory_price)
{
    uint64_t lo = 0, hi = (uint64_t)1 << 32;

    /* The time of reading grows linearly with the gap. Beyond wait_bytes the time of skipping grows
     * with the square root of the gap. At wait_bytes the time of skipping jumps up. On each side of
     * wait_bytes the two curves therefore cross at most once. */
    if (!read_through_is_cheaper(d, d->wait_bytes, size, memory_price))
        hi = d->wait_bytes;
    else
        lo = d->wait_bytes;
    while (lo + 1 < hi) {
        uint64_t mid = lo + (hi - lo) / 2;

        if (read_through_is_cheaper(d, mid, size, memory_price))
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

double cost_saved_usec_per_byte(const DeviceProfile *d, uint64_t bytes, uint64_t n_places)
{
    double seeks = (double)n_places * (double)cost_seek_bytes(d);

    return bytes > 0 ? (1 + seeks / (double)bytes) / d->rate_bytes_per_usec : 0;
}
