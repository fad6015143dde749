/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "predict/selection.h"

bool selection_parameters_valid(const SelectionParameters *p)
{
    return p->minimum_use >= 0 && p->minimum_use <= 1 && p->maximum_waste >= 0 &&
           p->maximum_waste <= 1;
}

static double expected_waste(const SelectionCandidate *c)
{
    return (double)c->bytes * (1 - c->use);
}

SelectionVerdict selection_consider(Selection *s, const SelectionCandidate *c)
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

void selection_cancel(SelectionReads *reads, const SelectionCandidate *c)
{
    double waste = expected_waste(c);

    reads->bytes -= MIN(c->bytes, reads->bytes);
    reads->expected_waste -= MIN(waste, reads->expected_waste);
}
