/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Operations on a set of ranges that only tests need. */

#include "base/ranges.h"

#include <string.h>

/* Adds [start, end). Returns -EINVAL if end < start, otherwise what range_set_insert() returns. */
static inline int range_set_insert_span(RangeSet *s, uint64_t start, uint64_t end)
{
    return end < start ? -EINVAL : range_set_insert(s, start, end - start);
}

static inline bool range_set_contains(const RangeSet *s, uint64_t at)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->ranges[i].offset <= at && at < range_end(&s->ranges[i]))
            return true;
    return false;
}

static inline bool range_set_equal(const RangeSet *a, const RangeSet *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->ranges, b->ranges, a->n * sizeof(Range)) == 0);
}

/* Joins neighbours whose gap is at most max_gap. */
static inline void range_set_merge_gaps(RangeSet *s, uint64_t max_gap)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        if (n > 0 && s->ranges[i].offset - range_end(&s->ranges[n - 1]) <= max_gap)
            s->ranges[n - 1].length = range_end(&s->ranges[i]) - s->ranges[n - 1].offset;
        else
            s->ranges[n++] = s->ranges[i];
    }
    s->n = n;
}
