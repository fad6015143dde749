/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The formulas of the mixture.
 *
 * Competing risks. An application i that does not run starts at the rate q_i(t): it starts in the
 * next dt with probability q_i dt, independently of the others. Within tau, during which the rate
 * holds, it starts with probability 1 - exp(-q_i tau). The rates of independent causes add, so the
 * mixture's rate is a sum, q_i = sum over experts k of w_k q_ik, where q_ik is the rate that expert
 * k estimates.
 *
 * The weights. Suppose that starts of application i come from independent Poisson processes, one
 * for each expert, with the rates w_k q_ik. If it starts at time t, the start came from expert k
 * with probability w_k q_ik(t) / q_i(t). This is the expectation step; summed over all starts it
 * gives the credit C_k. Given C_k, the likelihood of w_k is that of a Poisson process with the rate
 * w_k sum_i q_ik(t), observed all the time: C_k log w_k - w_k E_k, with the charge
 * E_k = integral of sum_i q_ik(t) dt. It is largest for w_k = C_k / E_k. This is the maximisation
 * step. Here each event makes one step of both, and C_k and E_k are decayed sums. At the fixed
 * point sum_k w_k E_k = sum_k C_k: as many starts are expected as came.
 *
 * Before the session ends. The present rate of an application depends on what started last, so it
 * holds until something else starts. Let q be its rate, s_0 the sum of the rates of all
 * applications, q' the application's rate from what runs alone (expert "run" of the user), and e
 * the rate at which sessions of the present age end. While the age is in one class, e is constant.
 * Let a(t) = P(the session goes on, and nothing has started),            a(0) = 1, b(t) = P(the
 * session goes on, something has started, but not i),  b(0) = 0. With s = s_0 + e and r = q' + e,
 *   a' = -s a,
 *   b' = (s_0 - q) a - r b,
 * so that over a time u in the class, with g = (s_0 - q) / (s - r),
 *   a(u) = a exp(-s u),
 *   b(u) = b exp(-r u) + a g (exp(-r u) - exp(-s u)).
 * The application starts at the rate q a + q' b. The probability that it starts in the class is the
 * integral of that:
 *   q a A + q' (b B + a g (B - A)),   A = (1 - exp(-s u)) / s,   B = (1 - exp(-r u)) / r.
 * The classes follow one another, each beginning with the a and b that the one before left;
 * before_end() adds them up. If s and r are equal up to rounding, the term with g is left out. */

#include "predict/mixture.h"

#include "predict/expert.h"

#include <string.h>

static const Expert *const experts[EXPERTS_OF_HISTORY] = {
        [EXPERT_OWN] = &expert_own,
        [EXPERT_LAST] = &expert_last,
        [EXPERT_RUN] = &expert_run,
};

/* For the rate at which sessions end: the prior of each class of ages counts as this many ends. */
#define END_PRIOR 0.5
/* … and the mean that is assumed before the first end was observed, as one end within this time. */
#define END_START_USEC (1800.0 * (double)USEC_PER_SEC)

struct Mixture {
    Chains *chains;
    UserHistory *user; /* of the session; NULL: unknown, or never seen */
    /* The rates of the applications of everybody's history, per microsecond, by expert. */
    double (*rates)[EXPERTS];
    size_t allocated_rates, n_rates;
    unsigned bucket; /* of the weights that go with the rates */
    /* For one history, while its rates are computed: rates by expert and application, what runs. */
    double *scratch;
    size_t allocated_scratch;
    bool *runs;
    size_t allocated_runs;
    uint32_t *running;
    size_t allocated_running;
    bool learning; /* the rates are those since `rated_at`, and nothing has changed since then */
    usec_t rated_at;
    uint64_t n_events;
};

int mixture_new(Chains *chains, Mixture **ret)
{
    Mixture *m = calloc(1, sizeof(*m));

    if (!m)
        return -ENOMEM;
    chains_end(chains);
    m->chains = chains;
    *ret = m;
    return 0;
}

Mixture *mixture_free(Mixture *m)
{
    if (!m)
        return NULL;
    chains_free(m->chains);
    free(m->rates);
    free(m->scratch);
    free(m->runs);
    free(m->running);
    free(m);
    return NULL;
}

Chains *mixture_chains(const Mixture *m)
{
    return m->chains;
}

Chains *mixture_release_chains(Mixture *m)
{
    Chains *chains = TAKE_PTR(m->chains);

    mixture_free(m);
    return chains;
}

/* --- rates ------------------------------------------------------------------------------------ */

/* Makes room for one history's rates. */
static int reserve(Mixture *m, const UserHistory *h)
{
    int r = grow_array(&m->scratch, &m->allocated_scratch, EXPERTS_OF_HISTORY * h->n_applications,
                       sizeof(*m->scratch));

    if (r >= 0)
        r = grow_array(&m->runs, &m->allocated_runs, h->n_applications, sizeof(*m->runs));
    if (r >= 0)
        r = grow_array(&m->running, &m->allocated_running, m->chains->session.n_running + 1,
                       sizeof(*m->running));
    return r;
}

/* The session in the numbers of one history. Applications that the history does not know are left
 * out. */
static Situation get_situation(Mixture *m, const UserHistory *h)
{
    const ChainsSession *session = &m->chains->session;
    Situation s = {
            .chains = m->chains,
            .history = h,
            .last = session->active ? user_history_find(h, session->last) : CHAINS_BEGIN,
            .running = m->running,
            .runs = m->runs,
            .prior_usec = expert_prior_usec(m->chains, h),
    };

    memset(m->runs, 0, h->n_applications * sizeof(*m->runs));
    for (size_t i = 0; i < session->n_running; i++) {
        uint32_t x = user_history_find(h, session->running[i]);

        if (x == CHAINS_NONE)
            continue;
        m->running[s.n_running++] = x;
        m->runs[x] = true;
    }
    if (s.last == CHAINS_NONE)
        s.last = CHAINS_BEGIN;
    if (chains_learns(m->chains, h) && m->chains->now > session->last_since)
        s.last_usec = (double)(m->chains->now - session->last_since);
    return s;
}

/* Fills the columns of one history's experts, from `column` on. */
static int rate_history(Mixture *m, const UserHistory *h, unsigned column, double *ret_known)
{
    const UserHistory *all = m->chains->histories[0];
    double *rates[EXPERTS_OF_HISTORY];
    Situation s;
    int r = reserve(m, h);

    if (r < 0)
        return r;
    memset(m->scratch, 0, EXPERTS_OF_HISTORY * h->n_applications * sizeof(*m->scratch));
    s = get_situation(m, h);
    for (unsigned k = 0; k < EXPERTS_OF_HISTORY; k++) {
        rates[k] = m->scratch + k * h->n_applications;
        experts[k]->rate(&s, rates[EXPERT_OWN], rates[k]);
    }
    for (size_t i = 1; i < h->n_applications; i++) {
        uint32_t row = user_history_find(all, h->applications[i].id);

        for (unsigned k = 0; row != CHAINS_NONE && k < EXPERTS_OF_HISTORY; k++)
            m->rates[row][column + k] = rates[k][i];
    }
    *ret_known = expert_known_successors(&s);
    return 0;
}

/* Computes the rates of all experts for the present. 0 or -ENOMEM. */
static int compute_rates(Mixture *m)
{
    const UserHistory *all = m->chains->histories[0];
    double known, known_to_user = 0;
    int r;

    m->n_rates = all->n_applications;
    r = grow_array(&m->rates, &m->allocated_rates, m->n_rates, sizeof(*m->rates));
    if (r < 0)
        return r;
    memset(m->rates, 0, m->n_rates * sizeof(*m->rates));
    if (m->user) {
        r = rate_history(m, m->user, 0, &known_to_user);
        if (r < 0)
            return r;
    }
    r = rate_history(m, all, EXPERTS_OF_HISTORY, &known);
    if (r < 0)
        return r;
    /* For an unknown user, the history of all users predicts. */
    if (!m->user || decayed_sum_is_zero(m->user->time)) {
        for (size_t i = 0; i < m->n_rates; i++)
            for (unsigned k = 0; k < EXPERTS_OF_HISTORY; k++)
                m->rates[i][k] = fmax(m->rates[i][k], m->rates[i][EXPERTS_OF_HISTORY + k]);
        known_to_user = known;
    }
    m->bucket = expert_bucket(known_to_user);
    return 0;
}

/* --- learning --------------------------------------------------------------------------------- */

/* The interval since the rates were computed is over, by the start of an application, or with
 * CHAINS_NONE otherwise: charges and credits the experts. */
static void learn_weights(Mixture *m, uint32_t started)
{
    Chains *c = m->chains;
    double usec = (double)(c->now - m->rated_at), weights[EXPERTS], expected[EXPERTS];
    uint32_t row;

    if (!m->learning)
        return;
    m->learning = false;
    expert_weights_get(&c->weights, m->bucket, c->weight, weights);
    for (unsigned k = 0; k < EXPERTS; k++) {
        expected[k] = 0;
        for (size_t i = 0; i < m->n_rates; i++)
            expected[k] += m->rates[i][k];
        expected[k] *= usec;
    }
    expert_weights_charge(&c->weights, m->bucket, c->weight, expected);
    row = started == CHAINS_NONE ? CHAINS_NONE : user_history_find(c->histories[0], started);
    if (row != CHAINS_NONE && row < m->n_rates)
        expert_weights_credit(&c->weights, m->bucket, c->weight, m->rates[row], weights);
}

/* True if the weights are updated from the interval after the n-th event. */
static bool is_sampled(uint64_t n)
{
    return n < MIXTURE_LEARN_ALL || n % (n / MIXTURE_LEARN_ALL) == 0;
}

/* After an event: begins an interval to learn from. */
static int begin_interval(Mixture *m)
{
    int r;

    if (m->chains->session.n_histories == 0 || !is_sampled(m->n_events++))
        return 0;
    r = compute_rates(m);
    if (r < 0)
        return r;
    m->learning = true;
    m->rated_at = m->chains->now;
    return 0;
}

int mixture_begin(Mixture *m, EventTime t, uint32_t user, bool learn)
{
    int r = 0;

    mixture_end(m, t);
    chains_set_time(m->chains, t);
    if (learn)
        r = chains_begin(m->chains, user);
    else
        chains_follow(m->chains);
    if (r < 0)
        return r;
    m->user = user == UID_INVALID ? NULL : chains_find_history(m->chains, user);
    return 0;
}

void mixture_end(Mixture *m, EventTime t)
{
    if (!m->chains->session.active)
        return;
    chains_set_time(m->chains, t);
    learn_weights(m, CHAINS_NONE);
    chains_end(m->chains);
    m->user = NULL;
}

int mixture_start(Mixture *m, EventTime t, uint32_t id)
{
    int r = m->chains->session.active ? 0 : mixture_begin(m, t, UID_INVALID, true);

    if (r < 0)
        return r;
    if (chains_runs(m->chains, id))
        return chains_start(m->chains, id);
    chains_set_time(m->chains, t);
    learn_weights(m, id);
    r = chains_start(m->chains, id);
    if (r >= 0)
        r = begin_interval(m);
    return r < 0 ? r : 1;
}

int mixture_exit(Mixture *m, EventTime t, uint32_t id)
{
    int r;

    if (chains_processes(m->chains, id) != 1)
        return chains_exit(m->chains, id);
    chains_set_time(m->chains, t);
    learn_weights(m, CHAINS_NONE);
    (void)chains_exit(m->chains, id);
    r = begin_interval(m);
    return r < 0 ? r : 1;
}

/* --- predicting ------------------------------------------------------------------------------- */

/* How a session goes on from its present age: the rates at which it ends, class by class. */
typedef struct Remaining {
    double end[CHAINS_AGES];  /* per microsecond */
    double usec[CHAINS_AGES]; /* still to come in that class; INFINITY for the last */
} Remaining;

static void get_remaining(const Chains *c, const UserHistory *h, Remaining *ret)
{
    usec_t age = chains_learns(c, h) ? c->now - c->session.begin : 0, start = 0;
    double mean =
            (chains_value(c, h->sessions) + END_PRIOR) / (chains_time_usec(c, h) + END_START_USEC);
    double prior_usec = END_PRIOR / mean;

    for (unsigned i = 0; i < CHAINS_AGES; i++) {
        usec_t end = chains_age_end(i);
        double usec = chains_value(c, h->age_time[i]) * (double)USEC_PER_MSEC;

        ret->end[i] = (chains_value(c, h->age_ended[i]) + mean * prior_usec) / (usec + prior_usec);
        ret->usec[i] = end == USEC_INFINITY ? (double)INFINITY
                       : age >= end         ? 0
                                            : (double)(end - MAX(age, start));
        start = end;
    }
}

/* P(the application starts before the session ends), as derived above: `rate` is q, `total` s_0 and
 * `later` q'. */
static double before_end(double rate, double total, double later, const Remaining *remaining)
{
    double a = 1, b = 0, p = 0;

    for (unsigned i = 0; i < CHAINS_AGES; i++) {
        double s = total + remaining->end[i], r = later + remaining->end[i];
        double left_a = exp(-s * remaining->usec[i]), left_b = exp(-r * remaining->usec[i]);
        double spent_a = (1 - left_a) / s, spent_b = (1 - left_b) / r;
        double g = fabs(s - r) > 1e-9 * s ? (total - rate) / (s - r) : 0;

        if (remaining->usec[i] <= 0)
            continue;
        p += a * rate * spent_a + later * (b * spent_b + a * g * (spent_b - spent_a));
        b = b * left_b + a * g * (left_b - left_a);
        a *= left_a;
    }
    return fmin(fmax(p, 0), 1);
}

/* The guesses for all horizons, from the present rates. */
static int make_guesses(const Mixture *m, const usec_t *horizons, size_t n, Guesses *ret)
{
    const Chains *c = m->chains;
    double weights[EXPERTS], total = 0;
    Remaining remaining;

    expert_weights_get(&c->weights, m->bucket, c->weight, weights);
    for (size_t i = 1; i < m->n_rates; i++)
        total += expert_weights_apply(m->rates[i], weights);
    get_remaining(c, m->user ? m->user : c->histories[0], &remaining);
    for (size_t i = 1; i < m->n_rates; i++) {
        double rate = expert_weights_apply(m->rates[i], weights), later = m->rates[i][EXPERT_RUN];

        for (size_t k = 0; rate > 0 && k < n; k++) {
            double p = horizons[k] == USEC_INFINITY ? before_end(rate, total, later, &remaining)
                                                    : -expm1(-rate * (double)horizons[k]);
            int r = guesses_add(&ret[k], c->histories[0]->applications[i].id, p);

            if (r < 0)
                return r;
        }
    }
    for (size_t k = 0; k < n; k++)
        guesses_sort(&ret[k]);
    return 0;
}

int mixture_predict(Mixture *m, EventTime t, const usec_t *horizons, size_t n, Guesses *ret)
{
    bool learning = m->learning;
    int r;

    for (size_t k = 0; k < n; k++)
        ret[k].n = 0;
    chains_set_time(m->chains, t);
    /* The rates of the interval so far are replaced by those of now: it is learned from in parts.
     */
    learn_weights(m, CHAINS_NONE);
    r = compute_rates(m);
    if (r < 0)
        return r;
    m->learning = learning;
    m->rated_at = m->chains->now;
    r = make_guesses(m, horizons, n, ret);
    for (size_t k = 0; r < 0 && k < n; k++)
        ret[k].n = 0;
    return r;
}
