/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/cost-model.h"

#include "base/macros.h"

#include <math.h>

static const CostModel models[_DEVICE_CLASS_MAX] = {
        [DEVICE_CLASS_UNKNOWN] = {100, 1000, 12000, 4170, 100, 1},
        [DEVICE_CLASS_HDD] = {100, 1000, 12000, 4170, 100, 1},
        [DEVICE_CLASS_SD] = {40, 0, 0, 0, 700, 1},
        [DEVICE_CLASS_EMMC] = {150, 0, 0, 0, 250, 1},
        [DEVICE_CLASS_NETDISK] = {100, 0, 0, 0, 3000, 64},
        [DEVICE_CLASS_SSD] = {500, 0, 0, 0, 100, 32},
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
    seek = m->seek_min_usec + (m->seek_max_usec - m->seek_min_usec) *
                                      sqrt(fmin((double)distance / (double)MAX(size, (uint64_t)1), 1));
    seek += m->half_rotation_usec;
    /* Ahead on the track, the platter brings it by itself. */
    wait = to > from ? (double)distance / m->rate_bytes_per_usec : INFINITY;
    return fmin(seek, wait);
}

double cost_request_usec(const CostModel *m, uint64_t head, uint64_t offset, uint64_t length,
                         uint64_t size)
{
    return m->fixed_usec + cost_move_usec(m, head, offset, size) +
           (double)length / m->rate_bytes_per_usec;
}

uint64_t cost_break_even_gap(const CostModel *m, uint64_t size, double memory_price)
{
    uint64_t lo = 0, hi = (uint64_t)1 << 32;

    /* Requests that a device serves side by side cost their share of the fixed part only. */
    double fixed = m->fixed_usec / MAX(m->queue, 1U);

    while (lo + 1 < hi) {
        uint64_t mid = lo + (hi - lo) / 2;

        if ((double)mid / m->rate_bytes_per_usec * (1 + memory_price) <
            fixed + cost_move_usec(m, 0, mid, size))
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}
