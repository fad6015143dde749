/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "model/weighted-ranges.h"

void weighted_ranges_done(WeightedRanges *s)
{
    free(s->ranges);
    *s = (WeightedRanges){0};
}

void weighted_ranges_trim(WeightedRanges *s)
{
    WeightedRange *smaller;

    if (s->n == 0 || s->n == s->allocated)
        return;
    smaller = reallocarray(s->ranges, s->n, sizeof(WeightedRange));
    if (!smaller)
        return;
    s->ranges = smaller;
    s->allocated = s->n;
}

/* Appends [start, end) unless it is empty or has no weight. If the last range ends at `start` and
 * has the same weight, that range is extended instead. */
static int emit(WeightedRanges *s, uint64_t start, uint64_t end, DecayedSum weight)
{
    size_t allocated = s->allocated;
    int r;

    if (start >= end || decayed_sum_is_zero(weight))
        return 0;
    if (s->n > 0) {
        WeightedRange *l = &s->ranges[s->n - 1];

        if (weighted_range_end(l) == start && l->weight.current == weight.current &&
            l->weight.previous == weight.previous) {
            l->length = end - l->offset;
            return 0;
        }
    }
    if (s->n >= WEIGHTED_RANGES_MAX)
        return -ENOMEM;
    r = grow_array(&s->ranges, &allocated, (size_t)s->n + 1, sizeof(WeightedRange));
    if (r < 0)
        return r;
    s->allocated = (uint32_t)MIN(allocated, UINT32_MAX);
    s->ranges[s->n++] = (WeightedRange){start, end - start, weight};
    return 0;
}

int weighted_ranges_from_ranges(const RangeSet *ranges, DecayedSum weight, WeightedRanges *ret)
{
    WeightedRanges s = {0};

    for (size_t i = 0; i < ranges->n; i++) {
        int r = emit(&s, ranges->ranges[i].offset, range_end(&ranges->ranges[i]), weight);

        if (r < 0) {
            weighted_ranges_done(&s);
            return r;
        }
    }
    weighted_ranges_trim(&s);
    *ret = s;
    return 0;
}

/* A position in weighted ranges that are read from the lowest offset to the highest. */
typedef struct Cursor {
    const WeightedRanges *s;
    uint64_t later;
    size_t i;
} Cursor;

/* Returns the value at `at`, and lowers *end to the offset at which the value changes next. */
static DecayedSum value_at(Cursor *c, uint64_t at, uint64_t *end)
{
    const WeightedRange *x;

    while (c->i < c->s->n && weighted_range_end(&c->s->ranges[c->i]) <= at)
        c->i++;
    if (c->i == c->s->n)
        return (DecayedSum){0, 0};
    x = &c->s->ranges[c->i];
    if (x->offset > at) {
        *end = MIN(*end, x->offset);
        return (DecayedSum){0, 0};
    }
    *end = MIN(*end, weighted_range_end(x));
    return decayed_sum_advance(x->weight, c->later);
}

int weighted_ranges_sum(const WeightedRanges *a, uint64_t a_later, const WeightedRanges *b,
                        uint64_t b_later, WeightedRanges *ret)
{
    Cursor ca = {a, a_later, 0}, cb = {b, b_later, 0};
    WeightedRanges s = {0};
    uint64_t at = 0;

    for (;;) {
        uint64_t end = UINT64_MAX;
        DecayedSum x = value_at(&ca, at, &end), y = value_at(&cb, at, &end);
        int r;

        if (end == UINT64_MAX)
            break; /* both have ended */
        r = emit(&s, at, end, decayed_sum_add(x, y));
        if (r < 0) {
            weighted_ranges_done(&s);
            return r;
        }
        at = end;
    }
    weighted_ranges_trim(&s);
    *ret = s;
    return 0;
}

void weighted_ranges_round(WeightedRanges *s)
{
    size_t n = s->n;

    s->n = 0;
    for (size_t i = 0; i < n; i++) {
        const WeightedRange x = s->ranges[i];

        /* This cannot fail, because the array has room for the ranges that it had before. */
        (void)emit(s, x.offset, weighted_range_end(&x), decayed_sum_round(x.weight));
    }
    weighted_ranges_trim(s);
}

int weighted_ranges_append(WeightedRanges *s, WeightedRange x)
{
    size_t n = s->n;
    uint64_t end;
    int r;

    if (x.length == 0 || __builtin_add_overflow(x.offset, x.length, &end) || end == UINT64_MAX ||
        decayed_sum_is_zero(x.weight) ||
        (n > 0 && x.offset < weighted_range_end(&s->ranges[n - 1])))
        return -EBADMSG;
    r = emit(s, x.offset, end, x.weight);
    if (r < 0)
        return r;
    return s->n == n + 1 ? 0 : -EBADMSG; /* the writer never writes equal ranges that touch */
}
