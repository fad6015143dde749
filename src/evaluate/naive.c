/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Two baselines: no prediction (only an LRU cache), and the naive predictor of the thesis (6.1.1),
 * whose probability of each application that does not run is its share of all starts. */

#include "evaluate/predictor-internal.h"

#include <string.h>

static int none_observe(Predictor *p, const PredictorEvent *event)
{
    return 0;
}

static int none_predict(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses)
{
    return 0;
}

static size_t none_size(const Predictor *p)
{
    return 0;
}

const PredictorOps predictor_ops_none = {
        .name = "lru",
        .source = "no prediction: the cache alone",
        .bytes = sizeof(Predictor),
        .observe = none_observe,
        .predict = none_predict,
        .size = none_size,
};

typedef struct Naive {
    Predictor base;
    uint64_t *counts; /* by item */
    size_t allocated;
    uint64_t total;
    RunningSet running;
} Naive;

static void naive_done(Predictor *p)
{
    Naive *n = (Naive *)p;

    free(n->counts);
    running_set_done(&n->running);
}

static int naive_end(Predictor *p, usec_t now)
{
    running_set_clear(&((Naive *)p)->running);
    return 0;
}

static int naive_observe(Predictor *p, const PredictorEvent *e)
{
    Naive *n = (Naive *)p;
    int r;

    if (e->kind == PREDICTOR_EXIT) {
        running_set_exit(&n->running, e->item);
        return 0;
    }
    if (e->kind == PREDICTOR_START) {
        r = running_set_start(&n->running, e->item);
        if (r <= 0)
            return r;
    }
    r = grow_array_zeroed(&n->counts, &n->allocated, (size_t)e->item + 1, sizeof(*n->counts));
    if (r < 0)
        return r;
    n->counts[e->item]++;
    n->total++;
    return 0;
}

static int naive_predict(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses)
{
    Naive *n = (Naive *)p;

    for (size_t i = 0; i < n->allocated; i++)
        if (n->counts[i] > 0 && !running_set_contains(&n->running, (uint32_t)i)) {
            int r = guesses_add(guesses, (uint32_t)i, (double)n->counts[i] / (double)n->total);
            if (r < 0)
                return r;
        }
    return 0;
}

static size_t naive_size(const Predictor *p)
{
    const Naive *n = (const Naive *)p;

    return n->allocated * sizeof(*n->counts);
}

const PredictorOps predictor_ops_naive = {
        .name = "naive",
        .source = "preload thesis 6.1.1",
        PREDICTOR_OPS(naive, Naive),
};
