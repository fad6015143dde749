/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/cachestat.h"

typedef struct Bisection {
    count_resident_t count;
    void *arg;
    uint64_t size;
    uint64_t page;
    RangeSet *ranges;
    unsigned calls;
} Bisection;

/* `known`: pages resident in it if known from the other half's count, else -1. Depth is the
 * logarithm of the size: 64 at most. */
static int bisect(Bisection *b, uint64_t offset, uint64_t length, int64_t known)
{
    uint64_t pages = DIV_ROUND_UP(length, b->page), half;
    int64_t n = known, left;
    int r;

    if (n < 0) {
        n = b->count(b->arg, offset, length);
        b->calls++;
        if (n < 0)
            return (int)n;
    }
    if (n == 0)
        return 0;
    if ((uint64_t)n >= pages || pages == 1)
        return range_set_add(b->ranges, offset, MIN(offset + length, b->size));

    half = pages / 2 * b->page;
    left = b->count(b->arg, offset, half);
    b->calls++;
    if (left < 0)
        return (int)left;
    r = bisect(b, offset, half, left);
    if (r < 0)
        return r;
    /* Pages come and go meanwhile: what the difference says is checked where it matters, at the
     * ends, and never negative. */
    return bisect(b, offset + half, length - half, left > n ? -1 : n - left);
}

int bisect_resident(count_resident_t count, void *arg, uint64_t size, uint64_t page, RangeSet *ret,
                    unsigned *ret_calls)
{
    _cleanup_range_set_ RangeSet ranges = {0};
    Bisection b = {count, arg, size, page, &ranges, 0};
    int r = size > 0 ? bisect(&b, 0, size, -1) : 0;

    if (r < 0)
        return r;
    *ret = ranges;
    ranges = (RangeSet){0};
    if (ret_calls)
        *ret_calls = b.calls;
    return 0;
}
