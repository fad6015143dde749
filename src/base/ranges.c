/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/ranges.h"

#include <errno.h>
#include <string.h>

void range_set_done(RangeSet *s)
{
    free(s->ranges);
    *s = (RangeSet){0};
}

/* Index of the first range whose end is >= at (it may touch or contain `at`). */
static size_t first_ending_at_or_after(const RangeSet *s, uint64_t at)
{
    size_t lo = 0, hi = s->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->ranges[mid].end < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

int range_set_add(RangeSet *s, uint64_t start, uint64_t end)
{
    size_t i, j;
    int r;

    if (end < start)
        return -EINVAL;
    if (start == end)
        return 0;

    /* Ranges i .. j-1 overlap or touch the new range and are merged into it. */
    i = s->n > 0 && s->ranges[s->n - 1].end < start ? s->n : first_ending_at_or_after(s, start);
    for (j = i; j < s->n && s->ranges[j].start <= end; j++)
        ;

    if (i < j) {
        s->ranges[i].start = MIN(s->ranges[i].start, start);
        s->ranges[i].end = MAX(s->ranges[j - 1].end, end);
        memmove(s->ranges + i + 1, s->ranges + j, (s->n - j) * sizeof(Range));
        s->n -= j - i - 1;
        return 0;
    }

    if (s->allocated == 0) {
        /* Most sets, those of small files, stay with one range, and there are many of them. */
        s->ranges = malloc(sizeof(Range));
        s->allocated = s->ranges ? 1 : 0;
    }
    r = grow_array(&s->ranges, &s->allocated, s->n + 1, sizeof(Range));
    if (r < 0)
        return r;
    memmove(s->ranges + i + 1, s->ranges + i, (s->n - i) * sizeof(Range));
    s->ranges[i] = (Range){start, end};
    s->n++;
    return 0;
}

int range_set_copy(const RangeSet *a, RangeSet *ret)
{
    RangeSet c = {0};

    if (a->n > 0) {
        c.ranges = reallocarray(NULL, a->n, sizeof(Range));
        if (!c.ranges)
            return -ENOMEM;
        memcpy(c.ranges, a->ranges, a->n * sizeof(Range));
        c.n = c.allocated = a->n;
    }
    *ret = c;
    return 0;
}

int range_set_union(const RangeSet *a, const RangeSet *b, RangeSet *ret)
{
    _cleanup_range_set_ RangeSet u = {0};
    size_t i = 0, j = 0;

    while (i < a->n || j < b->n) {
        const Range *x;
        int r;

        if (j >= b->n || (i < a->n && a->ranges[i].start <= b->ranges[j].start))
            x = &a->ranges[i++];
        else
            x = &b->ranges[j++];
        r = range_set_add(&u, x->start, x->end);
        if (r < 0)
            return r;
    }
    *ret = u;
    u = (RangeSet){0};
    return 0;
}

int range_set_unite(RangeSet *to, const RangeSet *more)
{
    RangeSet sum;
    int r = range_set_union(to, more, &sum);

    if (r < 0)
        return r;
    range_set_done(to);
    *to = sum;
    return 0;
}

int range_set_intersect(const RangeSet *a, const RangeSet *b, RangeSet *ret)
{
    _cleanup_range_set_ RangeSet x = {0};
    size_t i = 0, j = 0;

    while (i < a->n && j < b->n) {
        uint64_t start = MAX(a->ranges[i].start, b->ranges[j].start);
        uint64_t end = MIN(a->ranges[i].end, b->ranges[j].end);

        if (start < end) {
            int r = range_set_add(&x, start, end);
            if (r < 0)
                return r;
        }
        if (a->ranges[i].end < b->ranges[j].end)
            i++;
        else
            j++;
    }
    *ret = x;
    x = (RangeSet){0};
    return 0;
}

int range_set_subtract(const RangeSet *a, const RangeSet *b, RangeSet *ret)
{
    _cleanup_range_set_ RangeSet d = {0};
    size_t j = 0;

    for (size_t i = 0; i < a->n; i++) {
        uint64_t at = a->ranges[i].start, end = a->ranges[i].end;

        while (j < b->n && b->ranges[j].end <= at)
            j++;
        for (size_t k = j; at < end; k++) {
            bool more = k < b->n && b->ranges[k].start < end;
            uint64_t stop = more ? b->ranges[k].start : end;

            if (stop > at) {
                int r = range_set_add(&d, at, stop);
                if (r < 0)
                    return r;
            }
            if (!more)
                break;
            at = MAX(at, b->ranges[k].end);
        }
    }
    *ret = d;
    d = (RangeSet){0};
    return 0;
}

uint64_t range_set_total(const RangeSet *s)
{
    uint64_t total = 0;

    for (size_t i = 0; i < s->n; i++)
        if (__builtin_add_overflow(total, s->ranges[i].end - s->ranges[i].start, &total))
            return UINT64_MAX;
    return total;
}

bool range_set_valid(const RangeSet *s)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->ranges[i].end <= s->ranges[i].start)
            return false;
        if (i > 0 && s->ranges[i].start <= s->ranges[i - 1].end)
            return false;
    }
    return true;
}
