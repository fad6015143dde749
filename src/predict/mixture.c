/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "predict/mixture-internal.h"

/* Weights before anything was learned, as so many starts' worth of evidence. */
#define EVIDENCE_START 5.0
static const double weight_start[EXPERTS] = {0.15, 0.35, 0.20, 0.05, 0.15, 0.10};

static void mixture_destroy(Predictor *p)
{
    Mixture *m = (Mixture *)p;

    chains_free(m->chains);
    free(m->rates);
    free(m->running);
    free(m);
}

static int mixture_create(const PredictorParameters *p, uint64_t seed, Predictor **ret)
{
    Mixture *m = calloc(1, sizeof(*m));
    int r;

    if (!m)
        return -ENOMEM;
    m->combination = p->combination;
    m->users = p->mixture_users;
    r = chains_new(p->halflife_usec, p->chain_window, &m->chains);
    if (r < 0) {
        free(m);
        return r;
    }
    *ret = &m->base;
    return 0;
}

int mixture_new(usec_t halflife_usec, Predictor **ret)
{
    const PredictorParameters parameters = {
            .halflife_usec = halflife_usec,
            .chain_window = MIXTURE_CHAIN_WINDOW,
            .combination = MIXTURE_CALIBRATED,
            .mixture_users = true,
    };
    int r = mixture_create(&parameters, 0, ret);

    if (r >= 0)
        (*ret)->ops = &predictor_ops_mixture;
    return r;
}

Chains *mixture_chains(Predictor *p)
{
    return ((Mixture *)p)->chains;
}

int mixture_set_chains(Predictor *p, Chains *chains)
{
    Mixture *m = (Mixture *)p;

    if (p->in_session || m->n_events > 0)
        return -EINVAL;
    chains_free(m->chains);
    m->chains = chains;
    return 0;
}

int mixture_take_chains(Predictor *p, Chains **ret)
{
    Mixture *m = (Mixture *)p;

    if (p->in_session)
        return -EINVAL;
    *ret = TAKE_PTR(m->chains);
    return 0;
}

/* The learned weights of the present bucket. */
static void get_weights(const Mixture *m, double ret[static EXPERTS])
{
    const Chains *c = m->chains;

    for (unsigned k = 0; k < EXPERTS; k++)
        ret[k] = (chains_value(c, c->attributed[m->bucket][k]) / 1024 +
                  EVIDENCE_START * weight_start[k]) /
                 (chains_value(c, c->expected[m->bucket][k]) / 1024 + EVIDENCE_START);
}

static double weighted(const double rates[static EXPERTS], const double weights[static EXPERTS])
{
    double sum = 0;

    for (unsigned k = 0; k < EXPERTS; k++)
        sum += rates[k] * weights[k];
    return sum;
}

/* Learning the weights */

static void credit(const Chains *c, DecayedSum *f, double events)
{
    double x = events * 1024 * (double)c->weight;

    f->current = decayed_sum_saturating_add(f->current, x < 0x1p63 ? (uint64_t)(x + 0.5) : 0);
}

/* The interval since the rates were computed is over; by the start of an item, or not. */
static void learn(Mixture *m, uint32_t started)
{
    double usec = (double)(m->chains->now - m->rated_at), weights[EXPERTS], sum;
    Chains *c = m->chains;
    uint32_t i;

    if (!m->learning)
        return;
    m->learning = false;
    get_weights(m, weights);
    for (unsigned k = 0; k < EXPERTS; k++) {
        double rate = 0;

        for (size_t j = 0; j < m->n_rates; j++)
            rate += m->rates[j][k];
        credit(c, &c->expected[m->bucket][k], rate * usec);
    }
    i = started == PREDICTOR_NONE ? CHAINS_NONE : chains_find(c->histories[0], started);
    if (i == CHAINS_NONE || i >= m->n_rates)
        return;
    sum = weighted(m->rates[i], weights);
    for (unsigned k = 0; sum > 0 && k < EXPERTS; k++)
        credit(c, &c->attributed[m->bucket][k], weights[k] * m->rates[i][k] / sum);
}

/* Whether the interval after this event is one to learn from. */
static bool is_sampled(uint64_t n)
{
    return n < MIXTURE_LEARN_ALL || n % (n / MIXTURE_LEARN_ALL) == 0;
}

/* Observing */

static void set_time(Mixture *m, usec_t now)
{
    chains_set_time(m->chains, now, now + m->base.wall_offset);
}

static int mixture_begin(Predictor *p, usec_t now, uint32_t user)
{
    Mixture *m = (Mixture *)p;
    int r;

    set_time(m, now);
    m->user = NULL;
    m->learning = false;
    if (m->users && user != UID_INVALID) {
        r = chains_history(m->chains, user, &m->user);
        if (r < 0)
            return r;
        r = chains_begin(m->chains, m->user);
        if (r < 0)
            return r;
    }
    return chains_begin(m->chains, m->chains->histories[0]);
}

static int mixture_end(Predictor *p, usec_t now)
{
    Mixture *m = (Mixture *)p;

    set_time(m, now);
    learn(m, PREDICTOR_NONE);
    chains_end(m->chains, m->chains->histories[0]);
    if (m->user)
        chains_end(m->chains, m->user);
    m->user = NULL;
    return 0;
}

static int mixture_observe(Predictor *p, const PredictorEvent *e)
{
    Mixture *m = (Mixture *)p;
    Chains *c = m->chains;
    UserHistory *all = c->histories[0];
    uint32_t known = chains_find(all, e->item);
    bool running = known != CHAINS_NONE && all->applications[known].running;
    int r;

    if (e->kind == PREDICTOR_ACCESS || (e->kind == PREDICTOR_START) == running)
        return 0;
    set_time(m, e->at);
    learn(m, e->kind == PREDICTOR_START ? e->item : PREDICTOR_NONE);
    if (e->kind == PREDICTOR_START) {
        r = chains_start(c, all, e->item);
        if (r >= 0 && m->user)
            r = chains_start(c, m->user, e->item);
        if (r < 0)
            return r;
    } else {
        chains_exit(c, all, e->item);
        if (m->user)
            chains_exit(c, m->user, e->item);
    }
    if (!is_sampled(m->n_events++))
        return 0;
    r = mixture_compute_rates(m, m->user, NULL);
    if (r < 0)
        return r;
    m->learning = true;
    m->rated_at = c->now;
    return 0;
}

/* Predicting */

static double within(double rate, double tau_usec)
{
    return -expm1(-rate * tau_usec);
}

/* How a session goes on from its present age: the rates at which it ends, age by age. */
typedef struct Remaining {
    double end[CHAINS_AGES];  /* per microsecond */
    double usec[CHAINS_AGES]; /* still to come at that age; INFINITY for the last */
} Remaining;

static void get_remaining(const Chains *c, const UserHistory *h, Remaining *ret)
{
    double ms = (double)USEC_PER_MSEC;
    usec_t age = h->in_session ? c->now - h->begin : 0, start = 0;
    double overall = (chains_value(c, h->sessions) + 0.5) /
                     (chains_time_usec(c, h) + 1800.0 * (double)USEC_PER_SEC);

    for (unsigned i = 0; i < CHAINS_AGES; i++) {
        usec_t end = chains_age_end(i);

        ret->end[i] = mixture_shrink(chains_value(c, h->age_ended[i]),
                                     chains_value(c, h->age_time[i]) * ms, overall, 0.5 / overall);
        ret->usec[i] = end == USEC_INFINITY ? (double)INFINITY
                       : age >= end         ? 0
                                            : (double)(end - MAX(age, start));
        start = end;
    }
}

/* P(starts before the session ends), if it starts at `rate` until anything else does (at `total` in
 * all), and at the rate `later` from then on. a: nothing has started, b: something else has. */
static double before_end(double rate, double total, double later, const Remaining *remaining)
{
    double a = 1, b = 0, p = 0;

    for (unsigned i = 0; i < CHAINS_AGES; i++) {
        double s = total + remaining->end[i], t = later + remaining->end[i];
        double left_a = exp(-s * remaining->usec[i]), left_b = exp(-t * remaining->usec[i]);
        double spent_a = (1 - left_a) / s, spent_b = (1 - left_b) / t;
        double flow = fabs(s - t) > 1e-9 * s ? (total - rate) / (s - t) : 0;

        if (remaining->usec[i] <= 0)
            continue;
        p += a * rate * spent_a + later * (b * spent_b + a * flow * (spent_b - spent_a));
        b = b * left_b + a * flow * (left_b - left_a);
        a *= left_a;
    }
    return fmin(fmax(p, 0), 1);
}

static int predict_calibrated(Mixture *m, const UserHistory *user, usec_t horizon,
                              PredictorGuesses *guesses)
{
    const Chains *c = m->chains;
    double weights[EXPERTS], total = 0;
    Remaining remaining;

    get_weights(m, weights);
    for (size_t i = 1; i < m->n_rates; i++)
        total += weighted(m->rates[i], weights);
    get_remaining(c, user ? user : c->histories[0], &remaining);
    for (size_t i = 1; i < m->n_rates; i++) {
        double rate = weighted(m->rates[i], weights), later = m->rates[i][EXPERT_RUN];
        int r;

        if (rate <= 0)
            continue;
        r = predictor_guess_add(guesses, c->histories[0]->applications[i].id,
                                horizon == USEC_INFINITY
                                        ? before_end(rate, total, later, &remaining)
                                        : within(rate, (double)horizon));
        if (r < 0)
            return r;
    }
    return 0;
}

/* Equation 4.12 for the upper or lower application of a chain in state s: log P(not needed). */
static double log_not_needed(const ChainsStates *s, unsigned state, unsigned mine, double tau_usec)
{
    double n = 0, mass = 0;

    for (unsigned j = 0; j < 4; j++) {
        n += s->n[state][j];
        mass += j & mine ? s->n[state][j] : 0;
    }
    if (n <= 0 || s->dwell_usec[state] <= 0)
        return 0;
    return log1p(-fmin(within(n / s->dwell_usec[state], tau_usec) * mass / n, 1 - 1e-12));
}

/* The thesis's product (4.10, 4.11) over all chains, and the application's own two-state chain. */
static int predict_product(Mixture *m, const UserHistory *user, const PredictorState *given,
                           usec_t horizon, PredictorGuesses *guesses)
{
    const Chains *c = m->chains;
    const UserHistory *h = user ? user : c->histories[0];
    _cleanup_free_ bool *running = calloc(h->n_applications, sizeof(*running));
    _cleanup_free_ double *log_not = calloc(h->n_applications, sizeof(*log_not));

    if (!running || !log_not)
        return -ENOMEM;
    for (size_t i = 0; !given && i < h->n_running; i++)
        running[h->running[i]] = true;
    for (size_t i = 0; given && i < given->n_running; i++) {
        uint32_t a = chains_find(h, given->running[i]);
        if (a != CHAINS_NONE)
            running[a] = true;
    }
    for (size_t i = 0; i < h->n_pairs; i++) {
        const ChainsPair *p = &h->pairs[i];
        unsigned state = (unsigned)running[p->a] + 2 * (unsigned)running[p->b];
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

        if (running[i])
            continue;
        chains_totals(c, h, i, &t);
        if (t.off_usec > 0)
            log_not[i] -= t.starts / t.off_usec * (double)horizon;
        r = predictor_guess_add(guesses, h->applications[i].id, -expm1(log_not[i]));
        if (r < 0)
            return r;
    }
    return 0;
}

static int mixture_predict(Predictor *p, usec_t now, const PredictorState *state, usec_t horizon,
                           PredictorGuesses *guesses)
{
    Mixture *m = (Mixture *)p;
    const UserHistory *user = m->user;
    bool learning = m->learning;
    int r;

    set_time(m, now);
    if (state) {
        user = NULL;
        for (size_t i = 1; m->users && i < m->chains->n_histories; i++)
            if (m->chains->histories[i]->user == state->user)
                user = m->chains->histories[i];
    }
    if (m->combination == MIXTURE_PRODUCT)
        return predict_product(m, user, state, horizon, guesses);
    /* The rates that learning waits with are those at its event: they are computed anew after. */
    if (learning)
        learn(m, PREDICTOR_NONE);
    r = mixture_compute_rates(m, user, state);
    if (r < 0)
        return r;
    r = predict_calibrated(m, user, horizon, guesses);
    if (r < 0 || !learning)
        return r;
    if (state)
        r = mixture_compute_rates(m, m->user, NULL);
    m->learning = r >= 0;
    m->rated_at = m->chains->now;
    return r;
}

static size_t mixture_size(const Predictor *p)
{
    return chains_size(((const Mixture *)p)->chains);
}

const PredictorOps predictor_ops_mixture = {
        .name = "mixture",
        .source = "headstart (preload thesis 3 and 4, mended)",
        .create = mixture_create,
        .destroy = mixture_destroy,
        .begin = mixture_begin,
        .end = mixture_end,
        .observe = mixture_observe,
        .predict = mixture_predict,
        .size = mixture_size,
};
