/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/order.h"

/* Returns true if one read can serve a and b. *ret_gap is the number of other bytes that it reads.
 * a must not sort after b. */
static bool can_join(const PlacedRange *a, const PlacedRange *b, uint64_t max_gap,
                     uint64_t *ret_gap)
{
    uint64_t end = a->offset + a->length;

    *ret_gap = 0;
    if (a->file != b->file || b->offset < a->offset)
        return false;
    if (a->physical == PHYSICAL_UNKNOWN || b->physical == PHYSICAL_UNKNOWN)
        return a->physical == b->physical && b->offset <= end;
    if (b->offset == end) /* with compression, b may begin on the device before a->physical_end */
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

static bool are_near(const PlacedRange *a, const PlacedRange *b, uint64_t max_gap)
{
    return a->physical != PHYSICAL_UNKNOWN && b->physical != PHYSICAL_UNKNOWN &&
           a->disk == b->disk &&
           (b->physical <= a->physical_end || b->physical - a->physical_end <= max_gap);
}

void placed_ranges_drop_isolated(PlacedRangeList *l, uint64_t max_gap, double min_probability)
{
    size_t n = 0, chain = 0; /* first range of the connected sequence that ends at i */
    bool likely = false;     /* this sequence has a likely range */

    for (size_t i = 0; i < l->n; i++) {
        bool connected = i > 0 && are_near(&l->ranges[i - 1], &l->ranges[i], max_gap);
        bool last = i + 1 == l->n || !are_near(&l->ranges[i], &l->ranges[i + 1], max_gap);

        if (!connected) {
            chain = i;
            likely = false;
        }
        likely = likely || l->ranges[i].probability >= min_probability;
        for (size_t k = chain; last && likely && k <= i; k++)
            l->ranges[n++] = l->ranges[k];
    }
    l->n = n;
}
