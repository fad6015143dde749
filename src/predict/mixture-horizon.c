/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The probabilities that applications start within a horizon.
 *
 * Each expert gives for each application the probability that it starts within the horizon and
 * before the session ends (horizon.h). The mixture's probability is their weighted sum.
 *
 * The expert "chains" of a horizon treats starts and the end of the session as competing risks. An
 * application i that does not run starts at a rate. Its present rate depends on the application
 * that started last, and therefore holds until another application starts. Let
 *   s_0  be the present rate of all starts,
 *   q    = s_0 p(i) the present rate of application i; p is the distribution of the next start,
 *   q'   its rate after another application has started,
 *   e    the rate at which sessions of the present age end, constant within a class of ages.
 * Let
 *   a(t) = P(the session goes on, and nothing has started),            a(0) = 1,
 *   b(t) = P(the session goes on, something has started, but not i),   b(0) = 0.
 * With s = s_0 + e and r = q' + e,
 *   a' = -s a,
 *   b' = (s_0 - q) a - r b,
 * so that over a time u in the class, with g = (s_0 - q) / (s - r),
 *   a(u) = a exp(-s u),
 *   b(u) = b exp(-r u) + a g (exp(-r u) - exp(-s u)).
 * The application starts at the rate q a + q' b. The probability that it starts in the class is the
 * integral of this rate:
 *   q a A + q' (b B + a g (B - A)),   A = (1 - exp(-s u)) / s,   B = (1 - exp(-r u)) / r.
 * A class begins with the a and b at the end of the previous class. start_within() adds up the
 * integrals of all classes. If s and r are equal up to rounding, the term with g is left out. */

#include "predict/mixture-internal.h"

#include <math.h>
#include <string.h>

/* The prior of the rate at which sessions end counts as this many ends, in each class of ages. */
#define END_PRIOR 0.5
/* The prior of the mean rate: END_PRIOR ends within this time. */
#define END_START_USEC (1800.0 * (double)USEC_PER_SEC)
/* The losses of one snapshot depend on one another. Each counts as this share of an independent
 * loss. */
#define LOSS_RATE 0.3
/* A loss of everybody's history counts as this share of a loss of the user's own. */
#define OTHERS_SHARE 0.1

/* The rest of a session, by class of ages. */
typedef struct Remaining {
    double end[CHAINS_AGES];  /* the rate at which the session ends, per microsecond */
    double usec[CHAINS_AGES]; /* the time within the horizon that falls into the class */
} Remaining;

/* Learns from the sessions of a history at which rates sessions end. The previous rates become the
 * prior. */
static void learn_ends(const Chains *c, const UserHistory *h, double *rates)
{
    for (unsigned i = 0; i < CHAINS_AGES; i++) {
        double usec = chains_usec(c, h->age_time[i]);
        double prior_usec = END_PRIOR / rates[i];

        rates[i] = (chains_value(c, h->age_ended[i]) + END_PRIOR) / (usec + prior_usec);
    }
}

/* Computes the rest of the session within the horizon. The rates of everybody's sessions are the
 * prior of the rates of the user's. */
static void get_remaining(const Mixture *m, usec_t horizon, Remaining *ret)
{
    const Chains *c = m->chains;
    const UserHistory *all = c->histories[0];
    usec_t age = c->session.active ? c->now - c->session.begin : 0, start = 0;
    usec_t until = horizon < USEC_INFINITY - age ? age + horizon : USEC_INFINITY;
    double mean = (chains_value(c, all->sessions) + END_PRIOR) /
                  (chains_time_usec(c, all) + END_START_USEC);

    for (unsigned i = 0; i < CHAINS_AGES; i++)
        ret->end[i] = mean;
    learn_ends(c, all, ret->end);
    learn_ends(c, mixture_history(m), ret->end);
    for (unsigned i = 0; i < CHAINS_AGES; i++) {
        usec_t end = MIN(chains_age_end(i), until), begin = MAX(age, start);

        ret->usec[i] = end == USEC_INFINITY ? (double)INFINITY
                       : begin >= end       ? 0
                                            : (double)(end - begin);
        start = chains_age_end(i);
    }
}

/* Returns P(the application starts in the remaining time), as derived above: `rate` is q, `total`
 * is s_0 and `later` is q'. */
static double start_within(double rate, double total, double later, const Remaining *remaining)
{
    double a = 1, b = 0, p = 0;

    for (unsigned i = 0; i < CHAINS_AGES; i++) {
        double s, r, left_a, left_b, spent_a, spent_b, g;

        if (remaining->usec[i] <= 0)
            continue;
        s = total + remaining->end[i];
        r = later + remaining->end[i];
        left_a = exp(-s * remaining->usec[i]);
        left_b = exp(-r * remaining->usec[i]);
        spent_a = (1 - left_a) / s;
        spent_b = (1 - left_b) / r;
        g = fabs(s - r) > 1e-9 * s ? (total - rate) / (s - r) : 0;
        p += a * rate * spent_a + later * (b * spent_b + a * g * (spent_b - spent_a));
        b = b * left_b + a * g * (left_b - left_a);
        a *= left_a;
    }
    return min_double(max_double(p, 0), 1);
}

/* Computes the expert HORIZON_CHAINS of m->within. */
static void rate_horizon(Mixture *m, usec_t horizon)
{
    Remaining remaining;
    double total = 0;

    get_remaining(m, horizon, &remaining);
    for (size_t i = 1; i < m->n_rows; i++)
        total += m->rates[i][EXPERT_OWN];
    for (size_t i = 0; i < m->n_rows; i++) {
        double later = max_double(m->rates[i][EXPERT_RUN], m->rates[i][EXPERT_OWN]);

        m->within[i][HORIZON_CHAINS] =
                m->next[i] > 0 ? start_within(total * m->next[i], total, later, &remaining) : 0;
    }
}

int mixture_horizon_compute(Mixture *m, usec_t horizon)
{
    size_t n = m->situation.n_applications;
    double *columns[HORIZON_EXPERTS], *next, any = 0;
    int r = grow_array(&m->columns, &m->allocated_columns, (HORIZON_EXPERTS + 1) * n,
                       sizeof(*m->columns));

    if (r < 0)
        return r;
    rate_horizon(m, horizon);
    memset(m->columns, 0, (HORIZON_EXPERTS + 1) * n * sizeof(*m->columns));
    for (unsigned k = 0; k < HORIZON_EXPERTS; k++)
        columns[k] = m->columns + k * n;
    next = m->columns + HORIZON_EXPERTS * n;
    for (size_t i = 1; i < n; i++) {
        uint32_t row = m->rows[i];

        if (row == CHAINS_NONE)
            continue;
        columns[HORIZON_CHAINS][i] = m->within[row][HORIZON_CHAINS];
        next[i] = m->next[row];
    }
    r = horizons_compute(&m->horizons, &m->situation, &m->sequence, horizon, next, columns, &any);
    if (r < 0)
        return r;
    /* An application that the log does not contain started in none of the log's n sessions. Only
     * the smoothing predicts it: "chains", which counts as one case. */
    for (size_t i = 0; i < m->n_rows; i++) {
        double none = m->within[i][HORIZON_CHAINS] / (double)(m->situation.log->n + 1);

        m->within[i][HORIZON_NEXT] = any * m->next[i];
        m->within[i][HORIZON_AGE] = m->within[i][HORIZON_ALIKE] = m->within[i][HORIZON_AFTER] =
                none;
    }
    for (size_t i = 1; i < n; i++) {
        uint32_t row = m->rows[i];

        for (unsigned k = HORIZON_AGE; row != CHAINS_NONE && k < HORIZON_EXPERTS; k++)
            m->within[row][k] = columns[k][i];
    }
    return 0;
}

void mixture_class_mixture(const Mixture *m, unsigned horizon, double *ret)
{
    const Chains *c = m->chains;

    expert_weights_horizon_init(horizon, ret);
    expert_weights_update(c->histories[0]->weights.horizon[horizon], HORIZON_EXPERTS, c->weight,
                          ret);
    expert_weights_update(mixture_history(m)->weights.horizon[horizon], HORIZON_EXPERTS, c->weight,
                          ret);
}

void mixture_class_weights(const Mixture *m, unsigned horizon, double *ret)
{
    const Chains *c = m->chains;
    double posterior[HORIZON_LOSSES] = {0}, most = -INFINITY, sum = 0;
    bool asked[HORIZON_LOSSES];

    mixture_class_mixture(m, horizon, ret);
    expert_losses_apply(c->histories[0]->weights.losses[horizon], HORIZON_LOSSES, c->weight,
                        LOSS_RATE * OTHERS_SHARE, posterior);
    expert_losses_apply(mixture_history(m)->weights.losses[horizon], HORIZON_LOSSES, c->weight,
                        LOSS_RATE, posterior);
    /* An expert whose weight within the mixture is 0 also gets no weight outside of it. */
    for (unsigned k = 0; k < HORIZON_LOSSES; k++) {
        asked[k] = k == HORIZON_EXPERTS || ret[k] > 0;
        most = asked[k] ? max_double(most, posterior[k]) : most;
    }
    for (unsigned k = 0; k < HORIZON_LOSSES; k++)
        sum += posterior[k] = asked[k] ? exp(posterior[k] - most) : 0;
    for (unsigned k = 0; k < HORIZON_EXPERTS; k++)
        ret[k] = (posterior[k] + posterior[HORIZON_EXPERTS] * ret[k]) / sum;
}

void mixture_horizon_weights(const Mixture *m, usec_t horizon, double *ret)
{
    double share, next[HORIZON_EXPERTS];
    unsigned class = horizon_class(horizon, &share);

    mixture_class_weights(m, class, ret);
    mixture_class_weights(m, class + 1, next);
    for (unsigned k = 0; k < HORIZON_EXPERTS; k++)
        ret[k] = (1 - share) * ret[k] + share * next[k];
}

double mixture_horizon_chance(const Mixture *m, size_t row, const double *weights)
{
    double p = 0;

    for (unsigned k = 0; k < HORIZON_EXPERTS; k++)
        p += weights[k] * m->within[row][k];
    return p;
}

/* `start` is a number of snapshots. For a horizon of seconds it is the largest, because sessions
 * have more snapshots of that horizon, and those overlap. docs/predictors.md, Tight budgets,
 * shows other choices. */
double mixture_horizon_correct(const Mixture *m, usec_t horizon, double p)
{
    static const double start[HORIZON_CLASSES] = {20, 5, 10};
    const UserHistory *h = mixture_history(m);
    double share;
    unsigned class = horizon_class(horizon, &share);

    return (1 - share) * expert_promises_correct(h->weights.promises[class], m->chains->weight,
                                                 start[class], p) +
           share * expert_promises_correct(h->weights.promises[class + 1], m->chains->weight,
                                           start[class + 1], p);
}
