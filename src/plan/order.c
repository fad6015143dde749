/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/order.h"

#include "base/macros.h"
#include "pack/pack.h"

void placed_range_list_done(PlacedRangeList *l)
{
    free(l->ranges);
    *l = (PlacedRangeList){0};
}

static int add(PlacedRangeList *l, PlacedRange p)
{
    int r = grow_array(&l->ranges, &l->allocated, l->n + 1, sizeof(PlacedRange));

    if (r < 0)
        return r;
    l->ranges[l->n++] = p;
    return 0;
}

/* The first extent of the contiguous stretch that extent i belongs to: filesystems split long ones.
 */
static size_t run_of(const Extent *extents, size_t i)
{
    while (i > 0 && extents[i - 1].logical + extents[i - 1].length == extents[i].logical &&
           extents[i - 1].physical + extents[i - 1].length == extents[i].physical)
        i--;
    return i;
}

int placed_ranges_add(PlacedRangeList *l, uint32_t file, const PredictedMap *map, usec_t need,
                      const Extent *extents, size_t n_extents)
{
    uint64_t start = ALIGN_DOWN(map->offset, (uint64_t)PACK_PAGE_SIZE);
    uint64_t end = ALIGN_UP(map->offset + map->length, (uint64_t)PACK_PAGE_SIZE);
    size_t lo = 0, hi = n_extents;

    if (n_extents == 0)
        return add(l, (PlacedRange){
                              .file = file,
                              .offset = start,
                              .length = end - start,
                              .physical = PACK_PHYSICAL_UNKNOWN,
                              .physical_end = PACK_PHYSICAL_UNKNOWN,
                              .probability = map->probability,
                              .need = need,
                      });
    /* The first extent that ends after the start. */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (extents[mid].logical + extents[mid].length <= start)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < n_extents && extents[lo].logical < end; lo++) {
        const Extent *e = &extents[lo];
        uint64_t from = MAX(start, ALIGN_DOWN(e->logical, (uint64_t)PACK_PAGE_SIZE));
        uint64_t to = MIN(end, ALIGN_UP(e->logical + e->length, (uint64_t)PACK_PAGE_SIZE));
        uint64_t physical = e->physical + (from > e->logical ? from - e->logical : 0);
        int r;

        if (from >= to)
            continue;
        r = add(l, (PlacedRange){
                           .file = file,
                           .offset = from,
                           .length = to - from,
                           .physical = physical,
                           .physical_end = physical + (to - from),
                           .run = run_of(extents, lo),
                           .probability = map->probability,
                           .need = need,
                   });
        if (r < 0)
            return r;
        start = to; /* with blocks smaller than pages, no page is appended twice */
    }
    return 0;
}

static int compare_placed_ranges(const void *a, const void *b)
{
    const PlacedRange *x = a, *y = b;

    if (x->physical != y->physical)
        return x->physical < y->physical ? -1 : 1;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

void placed_ranges_sort(PlacedRangeList *l)
{
    if (l->n > 1)
        qsort(l->ranges, l->n, sizeof(PlacedRange), compare_placed_ranges);
}

/* True if one read can serve a and b; *ret_gap is what it reads besides. a does not sort after b.
 */
static bool can_join(const PlacedRange *a, const PlacedRange *b, uint64_t max_gap,
                     uint64_t *ret_gap)
{
    uint64_t end = a->offset + a->length;

    *ret_gap = 0;
    if (a->file != b->file || b->offset < a->offset)
        return false;
    if (a->physical == PACK_PHYSICAL_UNKNOWN || b->physical == PACK_PHYSICAL_UNKNOWN)
        return a->physical == b->physical && b->offset <= end;
    if (b->offset == end) /* compressed: b may begin on the device before a + length ends */
        return b->physical <= a->physical_end || b->physical - a->physical_end <= max_gap;
    if (a->run != b->run)
        return false;
    *ret_gap = b->offset > end ? b->offset - end : 0;
    return *ret_gap <= max_gap;
}

uint64_t placed_ranges_merge(PlacedRangeList *l, uint64_t max_gap, uint64_t *budget_bytes)
{
    uint64_t gaps = 0, gap;
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++) {
        PlacedRange *last = n > 0 ? &l->ranges[n - 1] : NULL, *p = &l->ranges[i];

        if (last && can_join(last, p, max_gap, &gap) && gap <= *budget_bytes) {
            uint64_t end = last->offset + last->length;

            gaps += gap;
            *budget_bytes -= gap;
            last->length = MAX(end, p->offset + p->length) - last->offset;
            if (p->offset + p->length > end) {
                last->physical_end = p->physical_end;
                last->run = p->run;
            }
            last->probability = MAX(last->probability, p->probability);
            last->need = MIN(last->need, p->need);
        } else
            l->ranges[n++] = *p;
    }
    l->n = n;
    return gaps;
}
