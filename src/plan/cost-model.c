/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/cost-model.h"

#include "base/macros.h"

#include <math.h>

#define HDD                                                                                 \
    {                                                                                       \
        .rate_bytes_per_usec = 100, .seek_min_usec = 1000, .seek_max_usec = 12000,          \
        .half_rotation_usec = 4170, .fixed_usec = 100, .wait_bytes = 256 * 1024, .queue = 1 \
    }

static const CostModel models[_DEVICE_CLASS_MAX] = {
        [DEVICE_CLASS_UNKNOWN] = HDD,
        [DEVICE_CLASS_HDD] = HDD,
        [DEVICE_CLASS_SD] = {.rate_bytes_per_usec = 40, .fixed_usec = 700, .queue = 1},
        [DEVICE_CLASS_EMMC] = {.rate_bytes_per_usec = 150, .fixed_usec = 250, .queue = 1},
        [DEVICE_CLASS_NETDISK] = {.rate_bytes_per_usec = 100, .fixed_usec = 3000, .queue = 64},
        [DEVICE_CLASS_SSD] = {.rate_bytes_per_usec = 500, .fixed_usec = 100, .queue = 32},
};

const CostModel *cost_model_of(DeviceClass c)
{
    return &models[(int)c >= 0 && c < _DEVICE_CLASS_MAX ? c : DEVICE_CLASS_UNKNOWN];
}

double cost_move_usec(const CostModel *m, uint64_t from, uint64_t to, uint64_t size)
{
    uint64_t distance = from < to ? to - from : from - to;
    double seek, wait;

    if (distance == 0 || m->seek_max_usec <= 0)
        return 0;
    seek = m->seek_min_usec +
           (m->seek_max_usec - m->seek_min_usec) *
                   sqrt(fmin((double)distance / (double)MAX(size, (uint64_t)1), 1));
    seek += m->half_rotation_usec;
    /* A place ahead on the same track reaches the head without a seek. */
    wait = to > from && distance <= m->wait_bytes ? (double)distance / m->rate_bytes_per_usec
                                                  : INFINITY;
    return fmin(seek, wait);
}

double cost_sequence_usec(const CostModel *m, const CostRequest *requests, size_t n, uint64_t size)
{
    double finish[COST_QUEUE_MAX] = {0}, link_free = 0;
    unsigned queue = MAX(MIN(m->queue, COST_QUEUE_MAX), 1U);
    uint64_t head = 0;

    for (size_t i = 0; i < n; i++) {
        /* The device accepts a request when the one `queue` places before it is done. */
        double latency = finish[i % queue] + m->fixed_usec +
                         cost_move_usec(m, head, requests[i].offset, size);

        link_free = fmax(latency, link_free) + (double)requests[i].length / m->rate_bytes_per_usec;
        finish[i % queue] = link_free;
        head = requests[i].offset + requests[i].length;
    }
    return link_free;
}

uint64_t cost_seek_bytes(const CostModel *m)
{
    /* The mean of the root of the distance between two places drawn at random is 8/15. */
    double seek = m->seek_max_usec <= 0 ? 0
                                        : m->seek_min_usec + m->half_rotation_usec +
                                                  (m->seek_max_usec - m->seek_min_usec) * 8 / 15;

    return (uint64_t)((m->fixed_usec / MAX(m->queue, 1U) + seek) * m->rate_bytes_per_usec);
}

static bool read_through_is_cheaper(const CostModel *m, uint64_t gap, uint64_t size,
                                    double memory_price)
{
    /* Requests that a device serves side by side cost their share of the fixed part only. */
    double fixed = m->fixed_usec / MAX(m->queue, 1U);

    return (double)gap / m->rate_bytes_per_usec * (1 + memory_price) <
           fixed + cost_move_usec(m, 0, gap, size);
}

uint64_t cost_break_even_gap(const CostModel *m, uint64_t size, double memory_price)
{
    uint64_t lo = 0, hi = (uint64_t)1 << 32;

    /* Skipping grows like a root at most, reading like a line: on either side of wait_bytes, where
     * skipping jumps up, they cross once. */
    if (!read_through_is_cheaper(m, m->wait_bytes, size, memory_price))
        hi = m->wait_bytes;
    else
        lo = m->wait_bytes;
    while (lo + 1 < hi) {
        uint64_t mid = lo + (hi - lo) / 2;

        if (read_through_is_cheaper(m, mid, size, memory_price))
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

double cost_saved_usec_per_byte(const CostModel *m, uint64_t bytes, uint64_t pieces)
{
    double seeks = (double)pieces * (double)cost_seek_bytes(m);

    return bytes > 0 ? (1 + seeks / (double)bytes) / m->rate_bytes_per_usec : 0;
}
