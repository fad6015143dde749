/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "observe/resident-ranges.h"

typedef struct Bisection {
    const ResidencySearch *search;
    uint64_t window;
    RangeSet *ranges;
    unsigned calls;
} Bisection;

/* Counts the resident pages of a range. This is one of the `calls_max` calls. */
static int64_t count(Bisection *b, uint64_t offset, uint64_t length)
{
    if (b->calls >= b->search->calls_max)
        return -ETIME;
    b->calls++;
    return b->search->count(b->search->arg, offset, length);
}

static int add_window(Bisection *b, uint64_t offset, uint64_t length)
{
    if (!b->search->read_window)
        return range_set_insert(b->ranges, offset, length);
    if (b->calls >= b->search->calls_max)
        return -ETIME;
    b->calls++;
    return b->search->read_window(b->search->arg, offset, length, b->ranges);
}

/* Adds the resident ranges of [offset, offset + length). `known`: the number of resident pages in
 * it, or -1 if they were not counted yet. The depth of the recursion is the logarithm of the number
 * of pages: at most 52 for 8 EiB of pages of 4 KiB. */
static int bisect(Bisection *b, uint64_t offset, uint64_t length, int64_t known)
{
    const uint64_t page = b->search->page_bytes;
    uint64_t pages = length / page + (length % page != 0), half;
    int64_t n = known, left;
    int r;

    if (n < 0) {
        n = count(b, offset, length);
        if (n < 0)
            return (int)n;
    }
    if (n == 0)
        return 0;
    if ((uint64_t)n >= pages)
        return range_set_insert(b->ranges, offset, length);
    if (length <= b->window)
        return add_window(b, offset, length);

    half = pages / 2 * page;
    left = count(b, offset, half);
    if (left < 0)
        return (int)left;
    r = bisect(b, offset, half, left);
    if (r < 0)
        return r;
    /* Pages come and go during the search, so a difference that became negative is not used. */
    return bisect(b, offset + half, length - half, left > n ? -1 : n - left);
}

int search_resident(const ResidencySearch *search, uint64_t size, RangeSet *ret,
                    unsigned *ret_calls)
{
    _cleanup_range_set_ RangeSet ranges = {0};
    Bisection b = {
            .search = search,
            .window = search->read_window ? search->window_bytes : search->page_bytes,
            .ranges = &ranges,
    };
    int r = size > 0 ? bisect(&b, 0, size, -1) : 0;

    if (r < 0 && r != -ETIME)
        return r;
    *ret = ranges;
    ranges = (RangeSet){0};
    if (ret_calls)
        *ret_calls = b.calls;
    return r == -ETIME;
}
