/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/cachestat.h"

#include <sys/syscall.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* the same on every architecture */
#endif

/* linux/mman.h has these from 6.5 on. */
typedef struct CachestatRange {
    uint64_t offset, length;
} CachestatRange;

typedef struct Cachestat {
    uint64_t n_cache, n_dirty, n_writeback, n_evicted, n_recently_evicted;
} Cachestat;

static int64_t count_resident(void *arg, uint64_t offset, uint64_t length)
{
    CachestatRange range = {offset, length};
    Cachestat c;

    if (syscall(SYS_cachestat, *(int *)arg, &range, &c, 0) < 0)
        return -errno;
    return (int64_t)MIN(c.n_cache, (uint64_t)INT64_MAX);
}

int cachestat_ranges(int fd, uint64_t size, RangeSet *ret)
{
    return bisect_resident(count_resident, &fd, size, ret, NULL);
}
