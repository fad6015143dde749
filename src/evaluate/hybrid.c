/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The hybrid of Rutt and Parthasarathy (section 4) combines the predictions of association rules
 * and of 1-5-gram+. If both predict an item, the larger probability counts. */

#include "evaluate/predictor-internal.h"

typedef struct Hybrid {
    Predictor base;
    Predictor *parts[2];
    Guesses guesses;
} Hybrid;

static void hybrid_done(Predictor *p)
{
    Hybrid *h = (Hybrid *)p;

    for (size_t i = 0; i < ELEMENTSOF(h->parts); i++)
        predictor_free(h->parts[i]);
    guesses_done(&h->guesses);
}

static int hybrid_init(Predictor *p, const PredictorParameters *parameters, uint64_t seed)
{
    static const PredictorOps *const ops[] = {&predictor_ops_association, &predictor_ops_1_5_gram};
    Hybrid *h = (Hybrid *)p;
    int r = 0;

    for (size_t i = 0; r >= 0 && i < ELEMENTSOF(h->parts); i++)
        r = predictor_create(ops[i], parameters, seed, &h->parts[i]);
    return r;
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
        PREDICTOR_OPS(hybrid, Hybrid),
        .init = hybrid_init,
        .begin = hybrid_begin,
};
