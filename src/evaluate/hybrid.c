/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The hybrid of Rutt and Parthasarathy (section 4) combines the predictions of association rules
 * and of 1-5-gram+. If both predict an item, the larger probability counts. */

#include "evaluate/predictor-internal.h"

typedef struct Hybrid {
    Predictor base;
    Predictor *parts[2];
    Guesses guesses;
} Hybrid;

static void hybrid_destroy(Predictor *p)
{
    Hybrid *h = (Hybrid *)p;

    for (size_t i = 0; i < ELEMENTSOF(h->parts); i++)
        predictor_free(h->parts[i]);
    guesses_done(&h->guesses);
    free(h);
}

static int hybrid_create(const PredictorParameters *p, uint64_t seed, Predictor **ret)
{
    static const PredictorOps *const ops[] = {&predictor_ops_association, &predictor_ops_1_5_gram};
    Hybrid *h = calloc(1, sizeof(*h));

    if (!h)
        return -ENOMEM;
    for (size_t i = 0; i < ELEMENTSOF(h->parts); i++) {
        int r = predictor_create(ops[i], p, seed, &h->parts[i]);
        if (r < 0) {
            hybrid_destroy(&h->base);
            return r;
        }
    }
    *ret = &h->base;
    return 0;
}

static int hybrid_begin(Predictor *p, usec_t now, uint32_t user)
{
    Hybrid *h = (Hybrid *)p;
    int r = predictor_begin(h->parts[0], now, user);

    return r < 0 ? r : predictor_begin(h->parts[1], now, user);
}

static int hybrid_end(Predictor *p, usec_t now)
{
    Hybrid *h = (Hybrid *)p;
    int r = predictor_end(h->parts[0], now);

    return r < 0 ? r : predictor_end(h->parts[1], now);
}

static int hybrid_observe(Predictor *p, const PredictorEvent *event)
{
    Hybrid *h = (Hybrid *)p;
    int r = predictor_observe(h->parts[0], event);

    return r < 0 ? r : predictor_observe(h->parts[1], event);
}

static int hybrid_predict(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses)
{
    Hybrid *h = (Hybrid *)p;

    for (size_t i = 0; i < ELEMENTSOF(h->parts); i++) {
        int r = predictor_predict(h->parts[i], now, horizon, &h->guesses);
        if (r < 0)
            return r;
        for (size_t j = 0; j < h->guesses.n; j++) {
            r = guesses_add(guesses, h->guesses.guesses[j].item, h->guesses.guesses[j].probability);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

static size_t hybrid_size(const Predictor *p)
{
    const Hybrid *h = (const Hybrid *)p;

    return predictor_size(h->parts[0]) + predictor_size(h->parts[1]);
}

const PredictorOps predictor_ops_hybrid = {
        .name = "hybrid",
        .source = "Rutt and Parthasarathy, section 4",
        .create = hybrid_create,
        .destroy = hybrid_destroy,
        .begin = hybrid_begin,
        .end = hybrid_end,
        .observe = hybrid_observe,
        .predict = hybrid_predict,
        .size = hybrid_size,
};
