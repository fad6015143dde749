/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/ranges.h"

#include <errno.h>
#include <string.h>

void range_set_done(RangeSet *s)
{
    free(s->ranges);
    *s = (RangeSet){0};
}

/* Returns the index of the first range whose end is >= at (the range may touch or contain `at`). */
static size_t first_ending_at_or_after(const RangeSet *s, uint64_t at)
{
    size_t lo = 0, hi = s->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (range_end(&s->ranges[mid]) < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static int make_room(RangeSet *s)
{
    if (s->allocated == 0) {
        /* Most sets belong to small files and keep one range, so the first allocation has room for
         * one. */
        s->ranges = malloc(sizeof(Range));
        s->allocated = s->ranges ? 1 : 0;
    }
    return grow_array(&s->ranges, &s->allocated, s->n + 1, sizeof(Range));
}

int range_set_insert(RangeSet *s, uint64_t offset, uint64_t length)
{
    uint64_t end;
    size_t i, j;
    int r;

    if (__builtin_add_overflow(offset, length, &end))
        return -EINVAL;
    if (length == 0)
        return 0;
    if (s->n < s->allocated && s->n > 0 && range_end(&s->ranges[s->n - 1]) < offset) {
        s->ranges[s->n++] = (Range){offset, length};
        return 0;
    }

    /* Ranges i .. j-1 overlap or touch the new range and are merged into it. */
    i = s->n > 0 && s->ranges[s->n - 1].offset <= offset ? s->n - 1
                                                         : first_ending_at_or_after(s, offset);
    i += i < s->n && range_end(&s->ranges[i]) < offset;
    for (j = i; j < s->n && s->ranges[j].offset <= end; j++)
        ;

    if (i < j) {
        uint64_t merged = MIN(s->ranges[i].offset, offset);

        s->ranges[i] = (Range){merged, MAX(range_end(&s->ranges[j - 1]), end) - merged};
        if (j > i + 1)
            memmove(s->ranges + i + 1, s->ranges + j, (s->n - j) * sizeof(Range));
        s->n -= j - i - 1;
        return 0;
    }

    r = make_room(s);
    if (r < 0)
        return r;
    memmove(s->ranges + i + 1, s->ranges + i, (s->n - i) * sizeof(Range));
    s->ranges[i] = (Range){offset, length};
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

        if (j >= b->n || (i < a->n && a->ranges[i].offset <= b->ranges[j].offset))
            x = &a->ranges[i++];
        else
            x = &b->ranges[j++];
        r = range_set_insert(&u, x->offset, x->length);
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
        uint64_t start = MAX(a->ranges[i].offset, b->ranges[j].offset);
        uint64_t a_end = range_end(&a->ranges[i]), b_end = range_end(&b->ranges[j]);
        uint64_t end = MIN(a_end, b_end);

        if (start < end) {
            int r = range_set_insert(&x, start, end - start);
            if (r < 0)
                return r;
        }
        if (a_end < b_end)
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
        uint64_t at = a->ranges[i].offset, end = range_end(&a->ranges[i]);

        while (j < b->n && range_end(&b->ranges[j]) <= at)
            j++;
        for (size_t k = j; at < end; k++) {
            bool more = k < b->n && b->ranges[k].offset < end;
            uint64_t stop = more ? b->ranges[k].offset : end;

            if (stop > at) {
                int r = range_set_insert(&d, at, stop - at);
                if (r < 0)
                    return r;
            }
            if (!more)
                break;
            at = MAX(at, range_end(&b->ranges[k]));
        }
    }
    *ret = d;
    d = (RangeSet){0};
    return 0;
}

uint64_t range_set_covered(const RangeSet *s, Range range)
{
    uint64_t end = range_end(&range), covered = 0;

    for (size_t i = first_ending_at_or_after(s, range.offset);
         i < s->n && s->ranges[i].offset < end; i++)
        covered += MIN(end, range_end(&s->ranges[i])) -
                   MIN(MAX(range.offset, s->ranges[i].offset), range_end(&s->ranges[i]));
    return covered;
}

uint64_t range_set_total(const RangeSet *s)
{
    uint64_t total = 0;

    for (size_t i = 0; i < s->n; i++)
        if (__builtin_add_overflow(total, s->ranges[i].length, &total))
            return UINT64_MAX;
    return total;
}

bool range_set_valid(const RangeSet *s)
{
    for (size_t i = 0; i < s->n; i++) {
        uint64_t end;

        if (s->ranges[i].length == 0 ||
            __builtin_add_overflow(s->ranges[i].offset, s->ranges[i].length, &end))
            return false;
        if (i > 0 && s->ranges[i].offset <= range_end(&s->ranges[i - 1]))
            return false;
    }
    return true;
}
