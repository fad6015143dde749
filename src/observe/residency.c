/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "observe/residency.h"

#include "base/clock.h"
#include "observe/resident-ranges.h"
#include "system/capability.h"

#include <sys/mman.h>

/* One call of mincore(2) reports at most this many pages: 4 MiB of a file with pages of 4 KiB. The
 * call takes about 50 us. */
#define WINDOW_PAGES 1024U
/* A distance from the end of a file. Every folio is smaller than this, so no folio of the file
 * reaches that far. */
#define BEYOND (1ULL << 30)

typedef struct FileSearch {
    CachestatQuery query; /* must be the first member: cachestat_query() gets a pointer to it */
    uint64_t page;
    uint64_t size;
} FileSearch;

bool residency_is_observable(void)
{
    return capability_is_effective(CAP_FOWNER) > 0;
}

static int read_pages(int fd, uint64_t at, uint64_t length, unsigned char *pages)
{
    void *map = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, (off_t)at);
    int r = 0;

    if (map == MAP_FAILED)
        return -errno;
    if (mincore(map, length, pages) < 0)
        r = -errno;
    munmap(map, length);
    return r;
}

/* Returns true if the kernel refuses to report residency: it then reports every page as resident. A
 * page far beyond the end of the file, which cannot be resident, shows this. No offset lies beyond
 * the end of a file of nearly 8 EiB, so the answer for such a file is trusted. */
static bool is_refused(const FileSearch *s)
{
    unsigned char page = 0;

    return s->size <= INT64_MAX - 3 * BEYOND &&
           read_pages(s->query.fd, ALIGN_UP(s->size, BEYOND) + BEYOND, s->page, &page) >= 0 &&
           (page & 1);
}

/* A read_window_t: asks mincore(2) which pages of the window are resident. */
static int read_window(void *arg, uint64_t offset, uint64_t length, RangeSet *ranges)
{
    const FileSearch *s = arg;
    unsigned char pages[WINDOW_PAGES];
    uint64_t n = DIV_ROUND_UP(length, s->page);
    int r;

    if (s->query.deadline != USEC_INFINITY && clock_now(CLOCK_MONOTONIC) >= s->query.deadline)
        return -ETIME;
    r = read_pages(s->query.fd, offset, length, pages);
    for (uint64_t i = 0, start; r >= 0 && i < n; i++) {
        if (!(pages[i] & 1))
            continue;
        for (start = i; i < n && (pages[i] & 1); i++)
            ;
        r = range_set_insert(ranges, offset + start * s->page,
                             MIN(i * s->page, length) - start * s->page);
    }
    return r;
}

/* Finds the resident ranges without cachestat(2): reads only the windows that hold data. Pages of a
 * hole were not read from the disk, although they may be in the page cache. Returns 0, 1 or an
 * error, with the meanings that residency_read() gives them. */
static int read_data(FileSearch *s, RangeSet *ranges)
{
    const uint64_t window = WINDOW_PAGES * s->page;

    for (uint64_t at = 0, calls = 0; at < s->size; at += MIN(window, s->size - at)) {
        off_t data = at > INT64_MAX - window ? -1 : lseek(s->query.fd, (off_t)at, SEEK_DATA);
        int r;

        if (data < 0 && errno == ENXIO)
            return 0; /* a hole that reaches to the end */
        if (data > 0 && (uint64_t)data > at)
            at = ALIGN_DOWN((uint64_t)data, s->page);
        if (at >= s->size)
            return 0;
        r = calls++ >= RESIDENCY_CALLS_MAX ? -ETIME
                                           : read_window(s, at, MIN(window, s->size - at), ranges);
        if (r < 0)
            return r == -ETIME ? 1 : r;
    }
    return 0;
}

int residency_read(int fd, uint64_t size, usec_t deadline, RangeSet *ret)
{
    _cleanup_range_set_ RangeSet ranges = {0};
    FileSearch s = {
            .query = {fd, CACHESTAT_RESIDENT, deadline},
            .page = (uint64_t)sysconf(_SC_PAGESIZE),
            .size = MIN(size, (uint64_t)INT64_MAX),
    };
    const ResidencySearch search = {
            .count = cachestat_query,
            .read_window = read_window,
            .window_bytes = WINDOW_PAGES * s.page,
            .arg = &s,
            .page_bytes = s.page,
            .calls_max = RESIDENCY_CALLS_MAX,
    };
    int r;

    if (size == 0)
        return 0;
    if (is_refused(&s))
        return -EPERM;
    if (s.size <= search.window_bytes)
        r = read_window(&s, 0, s.size, &ranges);
    else if (cachestat_count(fd, CACHESTAT_RESIDENT, 0, 1) >= 0)
        r = search_resident(&search, s.size, &ranges, NULL);
    else
        r = read_data(&s, &ranges);
    if (r < 0 && r != -ETIME)
        return r;
    *ret = ranges;
    ranges = (RangeSet){0};
    return r != 0;
}
