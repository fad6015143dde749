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

int64_t cachestat_count(int fd, CachestatWhat what, uint64_t offset, uint64_t length)
{
    CachestatRange range = {offset, length};
    Cachestat c;
    uint64_t n;

    if (syscall(SYS_cachestat, fd, &range, &c, 0) < 0)
        return -errno;
    n = (what == CACHESTAT_EVICTED ? 0 : c.n_cache) +
        (what == CACHESTAT_RESIDENT ? 0 : c.n_evicted);
    return (int64_t)MIN(n, (uint64_t)INT64_MAX);
}

typedef struct Question {
    int fd;
    CachestatWhat what;
} Question;

static int64_t count_pages(void *arg, uint64_t offset, uint64_t length)
{
    const Question *q = arg;

    return cachestat_count(q->fd, q->what, offset, length);
}

bool cachestat_available(void)
{
    _cleanup_close_ int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd >= 0 && cachestat_count(fd, CACHESTAT_RESIDENT, 0, 4096) >= 0;
}

int cachestat_ranges(int fd, CachestatWhat what, uint64_t size, RangeSet *ret)
{
    Question q = {fd, what};

    return bisect_resident(count_pages, &q, size, (uint64_t)sysconf(_SC_PAGESIZE), ret, NULL);
}
