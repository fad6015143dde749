/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Recent Popularity (Amer et al. 2002, described in the preload thesis, 2.1): the last k successors
 * of each item are kept. The most frequent of them is predicted if it occurs at least j times. If
 * several are equally frequent, the most recent one is predicted. The probability is the share of
 * this successor in the k. */

#include "evaluate/predictor-internal.h"

#include <string.h>

#define K_MAX 16

typedef struct Successors {
    uint32_t items[K_MAX]; /* the oldest first */
    uint32_t n;
} Successors;

typedef struct BestJOfK {
    Predictor base;
    unsigned j, k;
    Successors *successors; /* by item */
    size_t allocated;
    uint32_t last; /* PREDICTOR_NONE: no access in this session */
} BestJOfK;

static int best_init(Predictor *p, const PredictorParameters *parameters, uint64_t seed)
{
    BestJOfK *b = (BestJOfK *)p;

    b->j = parameters->popularity_j;
    b->k = parameters->popularity_k;
    b->last = PREDICTOR_NONE;
    return 0;
}

static void best_done(Predictor *p)
{
    free(((BestJOfK *)p)->successors);
}

static int best_end(Predictor *p, usec_t now)
{
    ((BestJOfK *)p)->last = PREDICTOR_NONE;
    return 0;
}

static int best_observe(Predictor *p, const PredictorEvent *e)
{
    BestJOfK *b = (BestJOfK *)p;
    int r;

    if (e->kind == PREDICTOR_EXIT)
        return 0;
    r = grow_array_zeroed(&b->successors, &b->allocated, (size_t)e->item + 1,
                          sizeof(*b->successors));
    if (r < 0)
        return r;
    if (b->last != PREDICTOR_NONE) {
        Successors *s = &b->successors[b->last];

        if (s->n == b->k) {
            memmove(s->items, s->items + 1, (b->k - 1) * sizeof(s->items[0]));
            s->n--;
        }
        s->items[s->n++] = e->item;
    }
    b->last = e->item;
    return 0;
}

static int best_predict(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses)
{
    const BestJOfK *b = (const BestJOfK *)p;
    const Successors *s;
    uint32_t best = PREDICTOR_NONE;
    unsigned most = 0;

    if (b->last == PREDICTOR_NONE)
        return 0;
    s = &b->successors[b->last];
    for (uint32_t i = s->n; i-- > 0;) {
        unsigned n = 0;

        for (uint32_t l = 0; l < s->n; l++)
            n += s->items[l] == s->items[i];
        if (n > most) {
            most = n;
            best = s->items[i];
        }
    }
    return most >= b->j ? guesses_add(guesses, best, (double)most / b->k) : 0;
}

static size_t best_size(const Predictor *p)
{
    return ((const BestJOfK *)p)->allocated * sizeof(Successors);
}

const PredictorOps predictor_ops_best_j_of_k = {
        .name = "best-j-of-k",
        .source = "Amer et al. 2002 (preload thesis 2.1)",
        PREDICTOR_OPS(best, BestJOfK),
        .init = best_init,
};
