/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "predict/object-scores.h"

#include <math.h>
#include <string.h>

double object_worth(uint64_t bytes, uint64_t seek_bytes)
{
    /* At least a page is read. */
    return 1 + (double)seek_bytes / (double)MAX(bytes, 4096U);
}

void object_scores_done(ObjectScores *s)
{
    free(s->scores);
    free(s->log_not);
    *s = (ObjectScores){0};
}

static int compare_scores(const void *a, const void *b)
{
    const ObjectScore *x = a, *y = b;

    if (x->worth != y->worth)
        return x->worth > y->worth ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

int object_scores_compute(ObjectScores *s, const ObjectTable *table, const Guesses *guesses)
{
    int r;

    r = grow_array(&s->log_not, &s->allocated_log_not, table->n_objects, sizeof(*s->log_not));
    if (r < 0)
        return r;
    if (s->n_objects != table->n_objects && table->n_objects > 0)
        memset(s->log_not, 0, table->n_objects * sizeof(*s->log_not));
    else
        for (size_t i = 0; i < s->n; i++)
            s->log_not[s->scores[i].object] = 0;
    s->n_objects = table->n_objects;
    s->n = 0;
    for (size_t i = 0; i < guesses->n; i++) {
        const Guess *g = &guesses->guesses[i];
        double log_not = log1p(-MIN(g->probability, 1 - 1e-15));
        const ItemParts *item;

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
                r = grow_array(&s->scores, &s->allocated, s->n + 1, sizeof(*s->scores));
                if (r < 0)
                    return r;
                s->scores[s->n] = (ObjectScore){.object = o, .order = (uint32_t)s->n};
                s->n++;
            }
            s->log_not[o] += l;
        }
    }
    for (size_t i = 0; i < s->n; i++) {
        ObjectScore *score = &s->scores[i];

        score->probability = -expm1(s->log_not[score->object]);
        score->worth = score->probability * (table->worth ? table->worth[score->object] : 1);
    }
    if (s->n > 0)
        qsort(s->scores, s->n, sizeof(*s->scores), compare_scores);
    return 0;
}

double object_scores_probability(const ObjectScores *s, uint32_t object)
{
    return object < s->n_objects ? -expm1(s->log_not[object]) : 0;
}
