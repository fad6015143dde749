/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "model/segments.h"

void segments_done(Segments *s)
{
    free(s->segments);
    *s = (Segments){0};
}

/* Appends [start, end) unless it is empty or weightless; melts into an equal neighbour. */
static int emit(Segments *s, uint64_t start, uint64_t end, DecayedSum weight)
{
    int r;

    if (start >= end || decayed_sum_is_zero(weight))
        return 0;
    if (s->n > 0) {
        Segment *l = &s->segments[s->n - 1];

        if (l->end == start && l->weight.current == weight.current &&
            l->weight.previous == weight.previous) {
            l->end = end;
            return 0;
        }
    }
    r = grow_array(&s->segments, &s->allocated, s->n + 1, sizeof(Segment));
    if (r < 0)
        return r;
    s->segments[s->n++] = (Segment){start, end, weight};
    return 0;
}

int segments_from_ranges(const RangeSet *ranges, DecayedSum weight, Segments *ret)
{
    Segments s = {0};

    for (size_t i = 0; i < ranges->n; i++) {
        int r = emit(&s, ranges->ranges[i].start, ranges->ranges[i].end, weight);

        if (r < 0) {
            segments_done(&s);
            return r;
        }
    }
    *ret = s;
    return 0;
}

/* One of the two functions while both are swept from left to right. */
typedef struct Cursor {
    const Segments *s;
    uint64_t later;
    size_t i;
} Cursor;

/* The value at `at`; *end is lowered to where it changes next. */
static DecayedSum value_at(Cursor *c, uint64_t at, uint64_t *end)
{
    const Segment *x;

    while (c->i < c->s->n && c->s->segments[c->i].end <= at)
        c->i++;
    if (c->i == c->s->n)
        return (DecayedSum){0, 0};
    x = &c->s->segments[c->i];
    if (x->start > at) {
        *end = MIN(*end, x->start);
        return (DecayedSum){0, 0};
    }
    *end = MIN(*end, x->end);
    return decayed_sum_advance(x->weight, c->later);
}

int segments_sum(const Segments *a, uint64_t a_later, const Segments *b, uint64_t b_later,
                 Segments *ret)
{
    Cursor ca = {a, a_later, 0}, cb = {b, b_later, 0};
    Segments s = {0};
    uint64_t at = 0;

    for (;;) {
        uint64_t end = UINT64_MAX;
        DecayedSum x = value_at(&ca, at, &end), y = value_at(&cb, at, &end);
        int r;

        if (end == UINT64_MAX)
            break; /* both have ended */
        r = emit(&s, at, end, decayed_sum_add(x, y));
        if (r < 0) {
            segments_done(&s);
            return r;
        }
        at = end;
    }
    *ret = s;
    return 0;
}

bool segments_within(const Segments *s, DecayedSum whole)
{
    for (size_t i = 0; i < s->n; i++)
        if (!decayed_sum_within(s->segments[i].weight, whole))
            return false;
    return true;
}

int segments_append(Segments *s, Segment x)
{
    size_t n = s->n;
    int r;

    if (x.start >= x.end || x.end == UINT64_MAX || decayed_sum_is_zero(x.weight) ||
        (n > 0 && x.start < s->segments[n - 1].end))
        return -EBADMSG;
    r = emit(s, x.start, x.end, x.weight);
    if (r < 0)
        return r;
    return s->n == n + 1 ? 0 : -EBADMSG; /* touching equals are not how we write it */
}
