/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "predict/selection.h"

#include <math.h>

bool selection_parameters_valid(const SelectionParameters *p)
{
    return p->minimum_use >= 0 && p->minimum_use <= 1 && p->maximum_waste >= 0 &&
           p->maximum_waste <= 1;
}

static double expected_waste(const SelectionCandidate *c)
{
    return (double)c->bytes * (1 - c->use);
}

/* Decides about one object. If the object is selected, counts it. */
static SelectionVerdict consider(Selection *s, const SelectionCandidate *c)
{
    double bound = s->parameters.maximum_waste;

    if (c->use < s->parameters.minimum_use)
        return SELECTION_UNLIKELY;
    if (c->bytes > s->budget_bytes - s->selected_bytes)
        return SELECTION_BEYOND;
    if (!c->present && bound < 1 &&
        s->reads->expected_waste + expected_waste(c) >
                bound * ((double)s->reads->bytes + (double)c->bytes))
        return SELECTION_WASTEFUL;
    s->selected_bytes += c->bytes;
    if (!c->present) {
        s->reads->bytes += MIN(c->bytes, UINT64_MAX - s->reads->bytes);
        s->reads->expected_waste += expected_waste(c);
    }
    return SELECTION_SELECTED;
}

/* The place of a candidate in the order in which a selection with a bound on waste considers it. */
typedef struct Place {
    size_t candidate;
    unsigned group; /* groups with smaller numbers come first */
    double saved;   /* larger ones come first */
} Place;

static int compare_places(const void *a, const void *b)
{
    const Place *x = a, *y = b;

    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->saved != y->saved)
        return x->saved > y->saved ? -1 : 1;
    return x->candidate < y->candidate ? -1 : x->candidate > y->candidate;
}

/* Orders n candidates for a bound on waste. First come those that would be selected without the
 * bound: those that read nothing, then those that save most time in the session for a byte of
 * expected waste. The others follow in the order of their scores. */
static void order_by_waste(const Selection *s, const SelectionCandidate *candidates, size_t n,
                           Place *ret)
{
    SelectionReads reads = {0};
    Selection without = *s;

    without.parameters.maximum_waste = 1;
    without.reads = &reads;
    for (size_t i = 0; i < n; i++) {
        const SelectionCandidate *c = &candidates[i];
        bool fits = consider(&without, c) == SELECTION_SELECTED;

        ret[i] = (Place){.candidate = i, .group = fits ? 0 : 2};
        if (!fits || c->present)
            continue;
        ret[i].group = 1;
        ret[i].saved = c->use < 1 ? c->worth * c->use / (1 - c->use) : (double)INFINITY;
    }
    qsort(ret, n, sizeof(*ret), compare_places);
}

int selection_choose(Selection *s, SelectionCandidate *candidates, size_t n)
{
    _cleanup_free_ Place *places = NULL;

    if (s->parameters.maximum_waste >= 1) {
        for (size_t i = 0; i < n; i++)
            candidates[i].verdict = consider(s, &candidates[i]);
        return 0;
    }
    places = calloc(n + 1, sizeof(*places));
    if (!places)
        return -ENOMEM;
    order_by_waste(s, candidates, n, places);
    for (size_t i = 0; i < n; i++) {
        SelectionCandidate *c = &candidates[places[i].candidate];

        c->verdict = consider(s, c);
    }
    return 0;
}

void selection_cancel(SelectionReads *reads, const SelectionCandidate *c)
{
    double waste = expected_waste(c);

    reads->bytes -= MIN(c->bytes, reads->bytes);
    reads->expected_waste -= MIN(waste, reads->expected_waste);
}
