/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "volume/placed-ranges.h"

#include "base/macros.h"

void placed_range_list_done(PlacedRangeList *l)
{
    free(l->ranges);
    *l = (PlacedRangeList){0};
}

/* Appends the part [start, end) of `range`. `physical` is the place of the part. An empty part is
 * not appended. */
static int append(PlacedRangeList *l, const PlacedRange *range, uint64_t start, uint64_t end,
                  uint64_t physical, size_t run)
{
    int r;

    if (start >= end)
        return 0;
    r = grow_array(&l->ranges, &l->allocated, l->n + 1, sizeof(PlacedRange));
    if (r < 0)
        return r;
    l->ranges[l->n] = *range;
    l->ranges[l->n].offset = start;
    l->ranges[l->n].length = end - start;
    l->ranges[l->n].physical = physical;
    l->ranges[l->n].physical_end =
            physical == PHYSICAL_UNKNOWN ? PHYSICAL_UNKNOWN : physical + (end - start);
    l->ranges[l->n++].run = run;
    return 0;
}

/* Returns the index of the first extent that ends after the offset, or `n` if there is none. */
static size_t first_after(const Extent *extents, size_t n, uint64_t offset)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (extents[mid].logical + extents[mid].length <= offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

int placed_ranges_add(PlacedRangeList *l, const PlacedRange *range, uint64_t page_bytes,
                      const Extent *extents, size_t n_extents, PlacedHoles holes)
{
    uint64_t start = ALIGN_DOWN(range->offset, page_bytes);
    uint64_t end = ALIGN_UP(range->offset + range->length, page_bytes);
    bool keep = holes == PLACED_HOLES_KEEP || n_extents == 0;
    int r = 0;

    for (size_t i = first_after(extents, n_extents, start);
         r >= 0 && i < n_extents && extents[i].logical < end; i++) {
        const Extent *e = &extents[i];
        uint64_t from = MAX(start, ALIGN_DOWN(e->logical, page_bytes));
        uint64_t to = MIN(end, ALIGN_UP(e->logical + e->length, page_bytes));

        if (from >= to)
            continue;
        if (keep)
            r = append(l, range, start, from, PHYSICAL_UNKNOWN, 0);
        if (r >= 0)
            r = append(l, range, from, to,
                       e->physical + (from > e->logical ? from - e->logical : 0), e->run);
        start = to; /* so that no page is appended twice if blocks are smaller than pages */
    }
    return r >= 0 && keep ? append(l, range, start, end, PHYSICAL_UNKNOWN, 0) : r;
}

static int compare(const void *a, const void *b)
{
    const PlacedRange *x = a, *y = b;

    if (x->disk != y->disk)
        return x->disk < y->disk ? -1 : 1;
    if (x->physical != y->physical)
        return x->physical < y->physical ? -1 : 1;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

void placed_ranges_sort(PlacedRangeList *l)
{
    if (l->n > 1)
        qsort(l->ranges, l->n, sizeof(PlacedRange), compare);
}
