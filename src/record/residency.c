/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/residency.h"

#include "base/capability.h"
#include "record/cachestat.h"

#include <sys/mman.h>

/* 64 MiB of file a call: 16 KiB of answer. */
#define CHUNK (64ULL * 1024 * 1024)
/* No folio is as large, so that none which begins before the end of a file reaches that far. */
#define BEYOND (1ULL << 30)

bool residency_is_truth(void)
{
    return capability_is_effective(CAP_FOWNER) > 0;
}

static int ask(int fd, uint64_t at, uint64_t length, unsigned char *pages)
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

/* A kernel that refuses the truth says "resident" of everything: also of a page far beyond the end
 * of the file, which cannot be. */
static bool is_lie(int fd, uint64_t size, uint64_t page)
{
    unsigned char answer = 0;

    return ask(fd, ALIGN_UP(size, BEYOND) + BEYOND, page, &answer) >= 0 && (answer & 1);
}

int residency_read(int fd, uint64_t size, RangeSet *ret)
{
    _cleanup_range_set_ RangeSet ranges = {0};
    unsigned char pages[CHUNK / 4096];
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    if (size == 0)
        return 0;
    if (size > INT64_MAX - 2 * BEYOND)
        return -EFBIG;
    if (is_lie(fd, size, page))
        return -EPERM;
    for (uint64_t at = 0; at < size; at += CHUNK) {
        uint64_t length = MIN(size - at, CHUNK), n = DIV_ROUND_UP(length, page);
        int r = 0;

        /* A sparse file may have terabytes: mincore looks at each page, cachestat at what is there.
         */
        if (size > CHUNK && cachestat_count(fd, CACHESTAT_RESIDENT, at, length) == 0)
            continue;
        r = ask(fd, at, length, pages);
        for (uint64_t i = 0, start; r >= 0 && i < n; i++) {
            if (!(pages[i] & 1))
                continue;
            for (start = i; i < n && (pages[i] & 1); i++)
                ;
            r = range_set_add(&ranges, at + start * page, MIN(at + i * page, size));
        }
        if (r < 0)
            return r;
    }
    *ret = ranges;
    ranges = (RangeSet){0};
    return 0;
}
