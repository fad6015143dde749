/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "predict/guesses.h"

#include <math.h>

void guesses_done(Guesses *g)
{
    free(g->guesses);
    *g = (Guesses){0};
}

int guesses_add(Guesses *g, uint32_t item, double probability)
{
    int r;

    if (isnan(probability) || probability <= 0)
        return 0;
    r = grow_array(&g->guesses, &g->allocated, g->n + 1, sizeof(*g->guesses));
    if (r < 0)
        return r;
    g->guesses[g->n++] = (Guess){item, MIN(probability, 1.0)};
    return 0;
}

static int compare_item(const void *a, const void *b)
{
    const Guess *x = a, *y = b;

    if (x->item != y->item)
        return x->item < y->item ? -1 : 1;
    return x->probability > y->probability ? -1 : x->probability < y->probability;
}

static int compare_probability(const void *a, const void *b)
{
    const Guess *x = a, *y = b;

    if (x->probability > y->probability)
        return -1;
    if (x->probability < y->probability)
        return 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

void guesses_sort(Guesses *g)
{
    size_t n = 0;

    if (g->n == 0)
        return;
    qsort(g->guesses, g->n, sizeof(*g->guesses), compare_item);
    for (size_t i = 0; i < g->n; i++)
        if (n == 0 || g->guesses[n - 1].item != g->guesses[i].item)
            g->guesses[n++] = g->guesses[i];
    g->n = n;
    qsort(g->guesses, g->n, sizeof(*g->guesses), compare_probability);
}
