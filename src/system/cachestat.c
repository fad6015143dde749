/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "system/cachestat.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* this number is the same on every architecture */
#endif

/* linux/mman.h has these types since Linux 6.5. */
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

    if (length == 0) /* the kernel takes a length of 0 as "to the end of the file" */
        return 0;
    if (syscall(SYS_cachestat, fd, &range, &c, 0) < 0)
        return -errno;
    n = (what == CACHESTAT_EVICTED ? 0 : c.n_cache) +
        (what == CACHESTAT_RESIDENT ? 0 : c.n_evicted);
    return (int64_t)MIN(n, (uint64_t)INT64_MAX);
}

bool cachestat_available(void)
{
    _cleanup_close_ int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd >= 0 && cachestat_count(fd, CACHESTAT_RESIDENT, 0, 1) >= 0;
}

int cachestat_is_resident(int fd, uint64_t offset, uint64_t length)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t start = ALIGN_DOWN(offset, page), end = offset + length;
    struct stat st;
    int64_t n;

    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        end = MIN(end, (uint64_t)st.st_size);
    if (start >= end)
        return 1;
    n = cachestat_count(fd, CACHESTAT_RESIDENT, start, end - start);
    return n < 0 ? (int)n : (uint64_t)n >= DIV_ROUND_UP(end - start, page);
}
