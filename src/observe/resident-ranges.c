/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "observe/resident-ranges.h"

#include "base/clock.h"

int64_t cachestat_query(void *arg, uint64_t offset, uint64_t length)
{
    const CachestatQuery *q = arg;

    if (q->deadline != USEC_INFINITY && clock_now(CLOCK_MONOTONIC) >= q->deadline)
        return -ETIME;
    return cachestat_count(q->fd, q->what, offset, length);
}

int cachestat_ranges(int fd, CachestatWhat what, uint64_t size, usec_t deadline, RangeSet *ret)
{
    CachestatQuery query = {fd, what, deadline};
    const ResidencySearch search = {
            .count = cachestat_query,
            .arg = &query,
            .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
            .calls_max = CACHESTAT_CALLS_MAX,
    };

    return search_resident(&search, size, ret, NULL);
}
