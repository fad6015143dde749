/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Questions that only tests ask of a set of ranges. */

#include "base/ranges.h"

#include <string.h>

static inline bool range_set_contains(const RangeSet *s, uint64_t at)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->ranges[i].start <= at && at < s->ranges[i].end)
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
        if (n > 0 && s->ranges[i].start - s->ranges[n - 1].end <= max_gap)
            s->ranges[n - 1].end = s->ranges[i].end;
        else
            s->ranges[n++] = s->ranges[i];
    }
    s->n = n;
}
