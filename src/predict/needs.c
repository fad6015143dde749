/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "predict/needs.h"

#include <math.h>
#include <string.h>

double needs_worth(uint64_t bytes, uint64_t seek_bytes)
{
    /* A page is the least that is read. */
    return 1 + (double)seek_bytes / (double)MAX(bytes, 4096U);
}

void needs_done(Needs *s)
{
    free(s->needs);
    free(s->log_not);
    *s = (Needs){0};
}

static int compare_needs(const void *a, const void *b)
{
    const Need *x = a, *y = b;

    if (x->worth != y->worth)
        return x->worth > y->worth ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

int needs_infer(Needs *s, const NeedsTable *table, const PredictorGuesses *guesses)
{
    int r;

    r = grow_array(&s->log_not, &s->allocated_log_not, table->n_objects, sizeof(*s->log_not));
    if (r < 0)
        return r;
    if (s->n_objects != table->n_objects && table->n_objects > 0)
        memset(s->log_not, 0, table->n_objects * sizeof(*s->log_not));
    else
        for (size_t i = 0; i < s->n; i++)
            s->log_not[s->needs[i].object] = 0;
    s->n_objects = table->n_objects;
    s->n = 0;
    for (size_t i = 0; i < guesses->n; i++) {
        const PredictorGuess *g = &guesses->guesses[i];
        double log_not = log1p(-MIN(g->probability, 1 - 1e-15));
        const NeedsItem *item;

        if (g->item >= table->n_items || !(log_not < 0))
            continue;
        item = &table->items[g->item];
        for (uint32_t j = 0; j < item->n; j++) {
            uint32_t o = table->parts[item->first + j];
            double l = log_not;

            if (table->chances)
                l = log1p(
                        -MIN(g->probability * (double)table->chances[item->first + j], 1 - 1e-15));
            if (!(l < 0))
                continue;

            if (s->log_not[o] >= 0) {
                r = grow_array(&s->needs, &s->allocated, s->n + 1, sizeof(*s->needs));
                if (r < 0)
                    return r;
                s->needs[s->n] = (Need){.object = o, .order = (uint32_t)s->n};
                s->n++;
            }
            s->log_not[o] += l;
        }
    }
    for (size_t i = 0; i < s->n; i++) {
        Need *need = &s->needs[i];

        need->probability = -expm1(s->log_not[need->object]);
        need->worth = need->probability * (table->worth ? table->worth[need->object] : 1);
    }
    if (s->n > 0)
        qsort(s->needs, s->n, sizeof(*s->needs), compare_needs);
    return 0;
}

double needs_probability(const Needs *s, uint32_t object)
{
    return object < s->n_objects ? -expm1(s->log_not[object]) : 0;
}
