/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/cachestat.h"

typedef struct Question {
    int fd;
    CachestatWhat what;
} Question;

static int64_t count_pages(void *arg, uint64_t offset, uint64_t length)
{
    const Question *q = arg;

    return cachestat_count(q->fd, q->what, offset, length);
}

int cachestat_ranges(int fd, CachestatWhat what, uint64_t size, RangeSet *ret)
{
    Question q = {fd, what};

    return bisect_resident(count_pages, &q, size, (uint64_t)sysconf(_SC_PAGESIZE), ret, NULL);
}
