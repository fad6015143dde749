/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/cachestat.h"

#include <fcntl.h>
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

int64_t cachestat_count(int fd, uint64_t offset, uint64_t length)
{
    CachestatRange range = {offset, length};
    Cachestat c;

    if (syscall(SYS_cachestat, fd, &range, &c, 0) < 0)
        return -errno;
    return (int64_t)MIN(c.n_cache, (uint64_t)INT64_MAX);
}

static int64_t count_resident(void *arg, uint64_t offset, uint64_t length)
{
    return cachestat_count(*(int *)arg, offset, length);
}

bool cachestat_available(void)
{
    _cleanup_close_ int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd >= 0 && cachestat_count(fd, 0, 4096) >= 0;
}

int cachestat_ranges(int fd, uint64_t size, RangeSet *ret)
{
    return bisect_resident(count_resident, &fd, size, (uint64_t)sysconf(_SC_PAGESIZE), ret, NULL);
}
