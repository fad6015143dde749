/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/passing.h"

static uint64_t metadata_end(const PackContentMetadata *m)
{
    return m->offset + m->length;
}

/* Returns the number of ranges that end at `at` or before it. */
static size_t count_before(const PackContentMetadata *metadata, size_t n, uint64_t at)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (metadata_end(&metadata[mid]) <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool take(uint64_t bytes, uint64_t *budget)
{
    if (bytes > *budget)
        return false;
    *budget -= bytes;
    return true;
}

/* Extends the first range that ends after the begin of `r` downwards to this begin. Returns the
 * bytes of the gap. */
static uint64_t extend_down(const Range *r, PackContentMetadata *metadata, size_t n,
                            uint64_t max_gap, uint64_t *budget)
{
    size_t k = count_before(metadata, n, r->offset);
    PackContentMetadata *m = &metadata[k];
    uint64_t gap, added;

    if (k == n || m->offset <= r->offset)
        return 0;
    gap = m->offset > range_end(r) ? m->offset - range_end(r) : 0;
    added = m->offset - r->offset;
    if (gap > max_gap || !take(added, budget))
        return 0;
    m->offset -= added;
    m->length += added;
    return gap;
}

/* Extends the last range that begins before the end of `r` upwards to this end, but not into the
 * next range. Returns the bytes of the gap. */
static uint64_t extend_up(const Range *r, PackContentMetadata *metadata, size_t n, uint64_t max_gap,
                          uint64_t *budget)
{
    size_t k = count_before(metadata, n, r->offset);
    PackContentMetadata *m;
    uint64_t gap, added;

    while (k < n && metadata[k].offset < range_end(r))
        k++;
    if (k == 0 || metadata_end(&metadata[k - 1]) >= range_end(r))
        return 0;
    m = &metadata[k - 1];
    gap = r->offset > metadata_end(m) ? r->offset - metadata_end(m) : 0;
    added = range_end(r) - metadata_end(m);
    if (gap > max_gap || !take(added, budget))
        return 0;
    m->length += added;
    return gap;
}

uint64_t passing_join(const RangeSet *passing, PackContentMetadata *metadata, size_t n,
                      uint64_t max_gap, uint64_t *budget)
{
    uint64_t gaps = 0;

    /* The nearest of several neighbours comes first. */
    for (size_t i = passing->n; i > 0; i--)
        gaps += extend_down(&passing->ranges[i - 1], metadata, n, max_gap, budget);
    for (size_t i = 0; i < passing->n; i++)
        gaps += extend_up(&passing->ranges[i], metadata, n, max_gap, budget);
    return gaps;
}
