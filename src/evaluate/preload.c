/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The thesis's predictor, `preload` (chapters 3 and 4), for comparison. It has a four-state
 * continuous-time Markov chain for every pair of applications, with state = (a runs) + 2 * (b
 * runs). Means decay exponentially by equation 3.10. The product of equations 4.10 to 4.12 over all
 * chains of an application is computed as a sum of logarithms (5.8.1).
 *
 * There are two corrections (docs/predictors.md). First, algorithm 4.4 decays every row of the
 * transition probabilities on every transition, by the time since the state was entered. Here, as
 * in equation 3.10, only the row of the state that was left decays, by the time since that state
 * was left before. Second, there is no earlier mean when a state is left for the first time, so the
 * first value is used unchanged. Therefore each visited row is a distribution.
 *
 * Memory grows with the square of the number of applications. Applications beyond
 * PRELOAD_APPLICATIONS_MAX are not learned. */

#include "evaluate/predictor-internal.h"

#include <math.h>
#include <string.h>

#define PRELOAD_APPLICATIONS_MAX 1024U

typedef struct PreloadChain {
    float transition_usec[4]; /* mean time until the state is left: tt */
    float probability[4][4];  /* of going to j when state i is left: tp */
    usec_t left[4];           /* when the state was last left; USEC_INFINITY: never */
    usec_t entered;           /* when the present state was entered */
    unsigned state;           /* runtime */
} PreloadChain;

typedef struct Preload {
    Predictor base;
    double lambda;   /* ln 2 / halflife_usec, per microsecond */
    uint32_t *index; /* item -> application, or PREDICTOR_NONE */
    size_t index_allocated;
    uint32_t *items; /* application -> item */
    size_t n, items_allocated;
    PreloadChain *chains; /* the chain of (a, b), a > b, is at a * (a - 1) / 2 + b; its states have
                             a as the lower bit */
    size_t chains_allocated;
    RunningSet running;
} Preload;

static int preload_init(Predictor *p, const PredictorParameters *parameters, uint64_t seed)
{
    Preload *l = (Preload *)p;

    l->lambda = M_LN2 / (double)parameters->halflife_usec;
    return 0;
}

static void preload_done(Predictor *p)
{
    Preload *l = (Preload *)p;

    free(l->index);
    free(l->items);
    free(l->chains);
    running_set_done(&l->running);
}

static size_t chain_at(size_t a, size_t b)
{
    return a > b ? a * (a - 1) / 2 + b : b * (b - 1) / 2 + a;
}

static unsigned state_of(const Preload *l, size_t a, size_t b)
{
    return (unsigned)running_set_contains(&l->running, l->items[a]) +
           2 * (unsigned)running_set_contains(&l->running, l->items[b]);
}

/* Computes equation 3.10, both for the first visit of a state and for a later one. */
static double decayed_mean(double mean, double value, double weight_of_mean)
{
    return weight_of_mean * mean + (1 - weight_of_mean) * value;
}

static void chain_update(const Preload *l, PreloadChain *c, unsigned to, usec_t now)
{
    unsigned from = c->state;
    double w;

    if (from == to)
        return;
    w = c->left[from] == USEC_INFINITY ? 0 : exp(-l->lambda * (double)(now - c->left[from]));
    c->transition_usec[from] =
            (float)decayed_mean(c->transition_usec[from], (double)(now - c->entered), w);
    for (unsigned j = 0; j < 4; j++)
        if (j != from)
            c->probability[from][j] = (float)decayed_mean(c->probability[from][j], j == to, w);
    c->left[from] = now;
    c->entered = now;
    c->state = to;
}

/* Updates every chain of an application that has started or exited. */
static void update_all(Preload *l, size_t a, usec_t now)
{
    for (size_t b = 0; b < l->n; b++) {
        if (b == a)
            continue;
        chain_update(l, &l->chains[chain_at(a, b)], state_of(l, MAX(a, b), MIN(a, b)), now);
    }
}

/* Ends the session. In the thesis's daemon the chains continue when a user logs out: applications
 * that still run exit as at any other time. */
static int preload_end(Predictor *p, usec_t now)
{
    Preload *l = (Preload *)p;

    while (l->running.n > 0) {
        uint32_t item = l->running.items[l->running.n - 1];

        if (running_set_exit(&l->running, item) > 0)
            update_all(l, l->index[item], now);
    }
    return 0;
}

/* Adds an application by lines 2 to 10 of algorithm 4.3. -E2BIG: there are too many
 * applications. */
static int add_application(Preload *l, uint32_t item, usec_t now)
{
    size_t old = l->index_allocated, n_chains = l->n * (l->n + 1) / 2;
    int r;

    if (item < old && l->index[item] != PREDICTOR_NONE)
        return 0;
    if (l->n >= PRELOAD_APPLICATIONS_MAX)
        return -E2BIG;
    r = grow_array(&l->index, &l->index_allocated, (size_t)item + 1, sizeof(*l->index));
    if (r < 0)
        return r;
    if (l->index_allocated > old)
        memset(l->index + old, 0xff, (l->index_allocated - old) * sizeof(*l->index));
    r = grow_array(&l->items, &l->items_allocated, l->n + 1, sizeof(*l->items));
    if (r < 0)
        return r;
    r = grow_array(&l->chains, &l->chains_allocated, n_chains, sizeof(*l->chains));
    if (r < 0)
        return r;
    l->index[item] = (uint32_t)l->n;
    l->items[l->n] = item;
    for (size_t b = 0; b < l->n; b++) {
        PreloadChain *c = &l->chains[chain_at(l->n, b)];

        *c = (PreloadChain){.entered = now, .state = state_of(l, l->n, b)};
        for (unsigned s = 0; s < 4; s++)
            c->left[s] = USEC_INFINITY;
    }
    l->n++;
    return 0;
}

static int preload_observe(Predictor *p, const PredictorEvent *e)
{
    Preload *l = (Preload *)p;
    int r;

    if (e->kind == PREDICTOR_ACCESS)
        return 0;
    if (e->kind == PREDICTOR_START) {
        r = add_application(l, e->item, e->at);
        if (r < 0)
            return r == -E2BIG ? 0 : r;
        r = running_set_start(&l->running, e->item);
    } else
        r = running_set_exit(&l->running, e->item);
    if (r > 0 && e->item < l->index_allocated && l->index[e->item] != PREDICTOR_NONE)
        update_all(l, l->index[e->item], e->at);
    return MIN(r, 0);
}

/* Returns the logarithm of P(e is not needed | chain) by equation 4.12. */
static double log_not_needed(const PreloadChain *c, unsigned state, bool e_is_upper,
                             double horizon_usec)
{
    double mass, p;

    if (c->left[state] == USEC_INFINITY || !(c->transition_usec[state] >= 0))
        return 0;
    mass = e_is_upper ? (double)c->probability[state][2] + (double)c->probability[state][3]
                      : (double)c->probability[state][1] + (double)c->probability[state][3];
    p = -expm1(-horizon_usec / MAX((double)c->transition_usec[state], 1.0)) * mass;
    return log1p(-MIN(p, 1.0 - 1e-12));
}

static int preload_predict(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses)
{
    Preload *l = (Preload *)p;

    for (size_t e = 0; e < l->n; e++) {
        double log_not = 0;
        int r;

        if (running_set_contains(&l->running, l->items[e]))
            continue;
        for (size_t b = 0; b < l->n; b++) {
            const PreloadChain *c = &l->chains[chain_at(e, b)];

            if (b == e)
                continue;
            /* The newer application is the lower bit of the state. */
            log_not += log_not_needed(c, state_of(l, MAX(e, b), MIN(e, b)), e < b, (double)horizon);
        }
        r = guesses_add(guesses, l->items[e], -expm1(log_not));
        if (r < 0)
            return r;
    }
    return 0;
}

static size_t preload_size(const Predictor *p)
{
    const Preload *l = (const Preload *)p;

    return l->n * (l->n - (l->n > 0)) / 2 * sizeof(PreloadChain) +
           l->index_allocated * sizeof(*l->index) + l->n * sizeof(*l->items);
}

const PredictorOps predictor_ops_preload = {
        .name = "preload",
        .source = "preload thesis, chapters 3 and 4",
        PREDICTOR_OPS(preload, Preload),
        .init = preload_init,
};
