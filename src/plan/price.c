/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/price.h"

#include "plan/cost-model.h"

#include <math.h>

/* A reader waits for one request after the other, so no latencies overlap. */
static double saved_usec(const DeviceProfile *d, uint64_t bytes, size_t n)
{
    return (double)n * (d->fixed_usec + cost_mean_move_usec(d)) +
           (double)bytes / d->rate_bytes_per_usec;
}

int price_of_placed_ranges(const DeviceProfile *d, uint64_t size, const Range *sweep,
                           size_t n_sweep, const Range *ranges, size_t n, Price *ret)
{
    _cleanup_free_ Range *all = reallocarray(NULL, n_sweep + n + 1, sizeof(Range));
    uint64_t bytes = 0;
    size_t n_all = 0, k = 0;

    if (!all)
        return -ENOMEM;
    for (size_t i = 0; i < n_sweep; i++) {
        while (k < n && ranges[k].offset < sweep[i].offset)
            all[n_all++] = ranges[k++];
        all[n_all++] = sweep[i];
    }
    while (k < n)
        all[n_all++] = ranges[k++];
    for (size_t i = 0; i < n; i++)
        bytes += ranges[i].length;
    *ret = (Price){
            .saved_usec = saved_usec(d, bytes, n),
            .cost_usec = fmax(cost_sequence_usec(d, all, n_all, size) -
                                      cost_sequence_usec(d, sweep, n_sweep, size),
                              0),
    };
    return 0;
}

Price price_of_unplaced_ranges(const DeviceProfile *d, uint64_t bytes, size_t n)
{
    double usec = saved_usec(d, bytes, n);

    return (Price){usec, usec};
}
