/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Wraps the product's predictor (predict/mixture.h) as one of the compared predictors. An item is
 * the id of an application in the chains of that predictor. For comparison the adapter can hide the
 * users from the predictor, and combine the chains by the thesis's product. */

#include "evaluate/predictor-internal.h"
#include "predict/mixture.h"

typedef struct Adapter {
    Predictor base;
    MixtureCombination combination;
    bool users;
    Mixture *mixture;
    uint32_t user; /* of the current session */
} Adapter;

static void adapter_done(Predictor *p)
{
    Adapter *a = (Adapter *)p;

    mixture_free(a->mixture);
}

static int adapter_init(Predictor *p, const PredictorParameters *parameters, uint64_t seed)
{
    Adapter *a = (Adapter *)p;
    _cleanup_chains_ Chains *chains = NULL;
    int r = chains_new(parameters->halflife_usec, parameters->chain_window, &chains);

    if (r >= 0)
        r = mixture_new(chains, &a->mixture);
    if (r < 0)
        return r;
    chains = NULL;
    a->combination = parameters->combination;
    a->users = parameters->mixture_users;
    a->user = UID_INVALID;
    return 0;
}

static EventTime time_of(const Adapter *a, usec_t now)
{
    return (EventTime){now, now + a->base.wall_offset};
}

static int adapter_begin(Predictor *p, usec_t now, uint32_t user)
{
    Adapter *a = (Adapter *)p;

    a->user = a->users ? user : UID_INVALID;
    return mixture_begin(a->mixture, time_of(a, now), a->user, true);
}

static int adapter_end(Predictor *p, usec_t now)
{
    Adapter *a = (Adapter *)p;

    return mixture_end(a->mixture, time_of(a, now));
}

static int adapter_observe(Predictor *p, const PredictorEvent *e)
{
    Adapter *a = (Adapter *)p;
    int r = 0;

    if (e->kind == PREDICTOR_START)
        r = mixture_start(a->mixture, time_of(a, e->at), e->item);
    else if (e->kind == PREDICTOR_EXIT)
        r = mixture_exit(a->mixture, time_of(a, e->at), e->item);
    return MIN(r, 0);
}

/* Returns log P(not needed) by equation 4.12, for one application of a chain that is in `state`.
 * `mine`: the bit that is set in the states in which the application runs. */
static double log_not_needed(const ChainsStates *s, unsigned state, unsigned mine, double tau_usec)
{
    double n = 0, mass = 0;

    for (unsigned j = 0; j < 4; j++) {
        n += s->n[state][j];
        mass += j & mine ? s->n[state][j] : 0;
    }
    if (n <= 0 || s->dwell_usec[state] <= 0)
        return 0;
    return log1p(-fmin(-expm1(-n / s->dwell_usec[state] * tau_usec) * mass / n, 1 - 1e-12));
}

/* Predicts each application by the thesis's product (4.10, 4.11) over all its chains and its own
 * two-state chain. */
static int predict_product(const Chains *c, const UserHistory *h, usec_t horizon, Guesses *guesses)
{
    _cleanup_free_ double *log_not = calloc(h->n_applications, sizeof(*log_not));

    if (!log_not)
        return -ENOMEM;
    for (size_t i = 0; i < h->n_pairs; i++) {
        const ChainsPair *p = &h->pairs[i];
        unsigned state = (unsigned)chains_runs(c, h->applications[p->a].id) +
                         2 * (unsigned)chains_runs(c, h->applications[p->b].id);
        ChainsStates s;

        if (state == 3 || p->a == CHAINS_BEGIN)
            continue;
        chains_states(c, h, p, &s);
        log_not[p->a] += log_not_needed(&s, state, 1, (double)horizon);
        log_not[p->b] += log_not_needed(&s, state, 2, (double)horizon);
    }
    for (uint32_t i = 1; i < h->n_applications; i++) {
        ChainsTotals t;
        int r;

        if (chains_runs(c, h->applications[i].id))
            continue;
        chains_totals(c, h, i, &t);
        if (t.off_usec > 0)
            log_not[i] -= t.starts / t.off_usec * (double)horizon;
        r = guesses_add(guesses, h->applications[i].id, -expm1(log_not[i]));
        if (r < 0)
            return r;
    }
    return 0;
}

static int adapter_predict(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses)
{
    Adapter *a = (Adapter *)p;
    const Chains *c = mixture_chains(a->mixture);
    const UserHistory *h = a->user == UID_INVALID ? NULL : chains_find_history(c, a->user);

    if (a->combination == MIXTURE_CALIBRATED)
        return mixture_predict(a->mixture, time_of(a, now), &horizon, 1, guesses);
    chains_set_time(mixture_chains(a->mixture), time_of(a, now));
    return predict_product(c, h ? h : c->histories[0], horizon, guesses);
}

static int adapter_rank(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses)
{
    Adapter *a = (Adapter *)p;

    if (a->combination == MIXTURE_CALIBRATED)
        return mixture_rank(a->mixture, time_of(a, now), horizon, guesses);
    return adapter_predict(p, now, horizon, guesses);
}

static size_t adapter_size(const Predictor *p)
{
    return chains_size(mixture_chains(((const Adapter *)p)->mixture));
}

const PredictorOps predictor_ops_mixture = {
        .name = "mixture",
        .source = "headstart (preload thesis 3 and 4, mended)",
        PREDICTOR_OPS(adapter, Adapter),
        .init = adapter_init,
        .begin = adapter_begin,
        .rank = adapter_rank,
};
