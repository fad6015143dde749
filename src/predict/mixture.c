/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Over 500 lines in one file: the steps of a prediction and the learning from its outcome share the
 * buffers of struct Mixture.
 *
 * The formulas of the mixture.
 *
 * The next start. Each expert k gives a distribution p_k of the application that starts next. The
 * mixture's distribution is p = sum over k of w_k p_k. When application i starts, expert k has
 * caused it with probability w_k p_k(i) / p(i). This is the expectation step of the proportions of
 * a mixture; the decayed sum of these credits gives the weights at the beginning of a session
 * (expert-weights.h). They converge to the best fixed weights, which is too slow for a change of
 * habits. Within a session the weights are therefore multiplied by boosts b_k, which follow the
 * Fixed Share rule (Herbster and Warmuth 1998): after the start of i,
 *   b_k = (1 - SHARE) b_k p_k(i) / p(i) + SHARE.
 * The first term is Bayes's rule. The second returns a share to the weights at the beginning
 * (mixing past posteriors: Bousquet and Warmuth 2002), so that no expert is lost.
 *
 * A horizon. Each expert gives for each application the probability that it starts within the
 * horizon and before the session ends (horizon.h). The mixture's probability is their weighted sum.
 * The weights are credited in the same way, from snapshots of predictions whose outcome is known
 * later. An application on which the experts agree says nothing about them; a credit counts as much
 * as they differ.
 *
 * The expert "chains" of a horizon. Competing risks: an application that does not run starts at a
 * rate. The present rate depends on what started last, so it holds until something else starts. Let
 * s_0 be the rate of all starts, q = s_0 p(i) that of the application, q' its rate later, and e the
 * rate at which sessions of the present age end. While the age is in one class, e is constant. Let
 *   a(t) = P(the session goes on, and nothing has started),            a(0) = 1,
 *   b(t) = P(the session goes on, something has started, but not i),   b(0) = 0.
 * With s = s_0 + e and r = q' + e,
 *   a' = -s a,
 *   b' = (s_0 - q) a - r b,
 * so that over a time u in the class, with g = (s_0 - q) / (s - r),
 *   a(u) = a exp(-s u),
 *   b(u) = b exp(-r u) + a g (exp(-r u) - exp(-s u)).
 * The application starts at the rate q a + q' b. The probability that it starts in the class is the
 * integral of that:
 *   q a A + q' (b B + a g (B - A)),   A = (1 - exp(-s u)) / s,   B = (1 - exp(-r u)) / r.
 * The classes follow one another, each beginning with the a and b that the one before left;
 * start_within() adds them up. If s and r are equal up to rounding, the term with g is left out. */

#include "predict/mixture.h"

#include "predict/expert.h"
#include "predict/horizon.h"

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
/* Of the boosts, which returns to the weights at the beginning with each start. */
#define SHARE 0.1
/* Predictions of each horizon whose outcome is waited for at a time. */
#define SNAPSHOTS         8U
#define SNAPSHOTS_OF_TIME 4U /* of one that ends before the session */
/* A snapshot does not learn from applications on which the experts agree up to this. */
#define SPREAD_MIN 0.001
/* Losses of one snapshot depend on one another: a loss counts as this share of an independent one,
 * and one of everybody's as this share of the user's own. */
#define LOSS_RATE    0.3
#define OTHERS_SHARE 0.1

/* What the experts predicted for a horizon, until the outcome is known. */
typedef struct Snapshot {
    bool pending;
    usec_t until;                       /* USEC_INFINITY: the end of the session */
    unsigned horizon;                   /* class */
    double (*chances)[HORIZON_EXPERTS]; /* by row; [0] < 0: it ran */
    double *promised;                   /* by row, not corrected */
    bool *came;
    size_t n, allocated_chances, allocated_promised, allocated_came;
} Snapshot;

struct Mixture {
    Chains *chains;
    UserHistory *user; /* of the session; NULL: unknown, or never seen */
    /* By row, which is an application of everybody's history, and by expert. */
    double (*rates)[EXPERTS_OF_CHAINS]; /* per microsecond */
    double (*chances)[EXPERTS];         /* that it is the next to start */
    double *next;                       /* the mixture of the chances */
    double (*within)[HORIZON_EXPERTS];  /* chances within the latest horizon */
    size_t allocated_rates, allocated_chances, allocated_next, allocated_within, n_rows;
    double weights[EXPERTS]; /* that go with the chances */
    double boosts[EXPERTS];
    unsigned bucket;
    /* For one history, while it is asked: rates by expert and application, what runs. */
    double *scratch;
    size_t allocated_scratch;
    bool *runs;
    size_t allocated_runs;
    uint32_t *running;
    size_t allocated_running;
    /* The history whose log is counted, and the present in its numbers. */
    const UserHistory *logged;
    SequenceSituation situation;
    LoggedStart *present;
    size_t allocated_present;
    bool *logged_runs;
    size_t allocated_logged_runs;
    double *columns; /* of horizons, by expert and application of `logged` */
    size_t allocated_columns;
    Sequence sequence;
    Horizons horizons;
    Snapshot snapshots[HORIZON_CLASSES][SNAPSHOTS];
    usec_t latest[HORIZON_CLASSES]; /* when the latest snapshot was taken */
    bool learning; /* the chances are the present ones: nothing has changed since */
    uint64_t n_events;
};

int mixture_new(Chains *chains, Mixture **ret)
{
    Mixture *m = calloc(1, sizeof(*m));

    if (!m)
        return -ENOMEM;
    chains_end(chains);
    m->chains = chains;
    for (unsigned k = 0; k < EXPERTS; k++)
        m->boosts[k] = 1;
    *ret = m;
    return 0;
}

Mixture *mixture_free(Mixture *m)
{
    if (!m)
        return NULL;
    chains_free(m->chains);
    free(m->rates);
    free(m->chances);
    free(m->next);
    free(m->within);
    free(m->scratch);
    free(m->runs);
    free(m->running);
    free(m->present);
    free(m->logged_runs);
    free(m->columns);
    sequence_done(&m->sequence);
    horizons_done(&m->horizons);
    for (unsigned i = 0; i < HORIZON_CLASSES * SNAPSHOTS; i++) {
        Snapshot *x = &m->snapshots[i / SNAPSHOTS][i % SNAPSHOTS];

        free(x->chances);
        free(x->promised);
        free(x->came);
    }
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

/* --- the next start: the experts of the chains --------------------------------------------------
 */

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

/* A user who has never been seen is expected to do what everybody does. */
static bool is_stranger(const Mixture *m)
{
    return !m->user || decayed_sum_is_zero(m->user->sessions);
}

/* Whose habits are asked for. */
static const UserHistory *user_of(const Mixture *m)
{
    return is_stranger(m) ? m->chains->histories[0] : m->user;
}

/* Computes the rates of the chains, and from them the chances that each application is next. */
static int rate_chains(Mixture *m)
{
    const UserHistory *all = m->chains->histories[0];
    double known, known_to_user = 0, sums[EXPERTS_OF_CHAINS] = {0};
    int r = 0;

    if (m->user)
        r = rate_history(m, m->user, 0, &known_to_user);
    if (r >= 0)
        r = rate_history(m, all, EXPERTS_OF_HISTORY, &known);
    if (r < 0)
        return r;
    if (is_stranger(m)) {
        for (size_t i = 0; i < m->n_rows; i++)
            for (unsigned k = 0; k < EXPERTS_OF_HISTORY; k++)
                m->rates[i][k] = m->rates[i][EXPERTS_OF_HISTORY + k];
        known_to_user = known;
    }
    for (size_t i = 1; i < m->n_rows; i++)
        for (unsigned k = 0; k < EXPERTS_OF_CHAINS; k++)
            sums[k] += m->rates[i][k];
    for (size_t i = 1; i < m->n_rows; i++)
        for (unsigned k = 0; k < EXPERTS_OF_CHAINS; k++)
            m->chances[i][k] = sums[k] > 0 ? m->rates[i][k] / sums[k] : 0;
    m->bucket = expert_bucket(known_to_user);
    return 0;
}

/* --- the next start: the experts of the log ------------------------------------------------------
 */

/* The session in the numbers of the history whose log is counted. */
static int set_situation(Mixture *m)
{
    const Chains *c = m->chains;
    const ChainsSession *s = &c->session;
    const UserHistory *h = is_stranger(m) || m->user->log.n == 0 ? c->histories[0] : m->user;
    size_t n_starts = s->active ? s->n_starts : 0;
    LoggedSession present = {.begin_msec = s->begin_realtime_msec};
    int r = grow_array(&m->present, &m->allocated_present, n_starts + 1, sizeof(*m->present));

    if (r >= 0)
        r = grow_array(&m->logged_runs, &m->allocated_logged_runs, h->n_applications,
                       sizeof(*m->logged_runs));
    if (r < 0)
        return r;
    memset(m->logged_runs, 0, h->n_applications * sizeof(*m->logged_runs));
    for (size_t i = 0; i < s->n_running; i++) {
        uint32_t x = user_history_find(h, s->running[i]);

        if (x != CHAINS_NONE)
            m->logged_runs[x] = true;
    }
    present.starts = m->present;
    for (size_t i = 0; i < n_starts; i++) {
        uint32_t a = user_history_find(h, s->starts[i].application);

        if (a != CHAINS_NONE)
            m->present[present.n++] = (LoggedStart){a, s->starts[i].at_msec, s->starts[i].end_msec};
    }
    m->logged = h;
    m->situation = (SequenceSituation){
            .log = &h->log,
            .runs = m->logged_runs,
            .n_applications = h->n_applications,
            .now_msec = c->realtime / USEC_PER_MSEC,
            .halflife_msec = MAX(c->halflife_usec / USEC_PER_MSEC, (uint64_t)1),
            .age_msec = s->active ? (c->now - s->begin) / USEC_PER_MSEC : 0,
            .quiet_msec = s->active ? (c->now - s->last_since) / USEC_PER_MSEC : 0,
    };
    present.length_msec = (uint32_t)MIN(m->situation.age_msec, UINT32_MAX);
    m->situation.present = present;
    /* An application that the history does not know was followed by nothing yet. */
    for (size_t i = 0; i < ELEMENTSOF(m->situation.before); i++)
        m->situation.before[i] =
                i < n_starts    ? user_history_find(h, s->starts[n_starts - 1 - i].application)
                : i == n_starts ? CHAINS_BEGIN
                                : SEQUENCE_NONE;
    return 0;
}

static uint32_t row_of(const Mixture *m, size_t application)
{
    return user_history_find(m->chains->histories[0], m->logged->applications[application].id);
}

static int count_log(Mixture *m)
{
    int r = set_situation(m);

    if (r >= 0)
        r = sequence_compute(&m->sequence, &m->situation);
    for (unsigned k = 0; r >= 0 && k < SEQUENCES; k++) {
        const double *chances = sequence_chances(&m->sequence, &m->situation, k);

        for (size_t i = 1; i < m->situation.n_applications; i++) {
            uint32_t row = row_of(m, i);

            if (row != CHAINS_NONE)
                m->chances[row][EXPERTS_OF_CHAINS + k] = chances[i];
        }
    }
    return r;
}

static int reserve_rows(Mixture *m)
{
    size_t n = m->chains->histories[0]->n_applications;
    int r = grow_array(&m->rates, &m->allocated_rates, n, sizeof(*m->rates));

    if (r >= 0)
        r = grow_array(&m->chances, &m->allocated_chances, n, sizeof(*m->chances));
    if (r >= 0)
        r = grow_array(&m->next, &m->allocated_next, n, sizeof(*m->next));
    if (r >= 0)
        r = grow_array(&m->within, &m->allocated_within, n, sizeof(*m->within));
    if (r < 0)
        return r;
    m->n_rows = n;
    memset(m->rates, 0, n * sizeof(*m->rates));
    memset(m->chances, 0, n * sizeof(*m->chances));
    return 0;
}

/* The learned weights, times the boosts. */
static void set_weights(Mixture *m)
{
    const Chains *c = m->chains;
    double sum = 0;

    expert_weights_next_init(m->weights);
    expert_weights_update(c->histories[0]->weights.next[m->bucket], EXPERTS, c->weight, m->weights);
    expert_weights_update(user_of(m)->weights.next[m->bucket], EXPERTS, c->weight, m->weights);
    for (unsigned k = 0; k < EXPERTS; k++)
        sum += m->weights[k] *= m->boosts[k];
    for (unsigned k = 0; k < EXPERTS; k++)
        m->weights[k] /= sum;
}

/* Computes the chances of all experts for the present, and the distribution of the next start. 0 or
 * -ENOMEM. */
static int compute_next(Mixture *m)
{
    double sum = 0;
    int r = reserve_rows(m);

    if (r >= 0)
        r = rate_chains(m);
    if (r >= 0)
        r = count_log(m);
    if (r < 0)
        return r;
    set_weights(m);
    for (size_t i = 0; i < m->n_rows; i++) {
        m->next[i] = 0;
        for (unsigned k = 0; k < EXPERTS; k++)
            m->next[i] += m->weights[k] * m->chances[i][k];
        sum += m->next[i];
    }
    for (size_t i = 0; sum > 0 && i < m->n_rows; i++)
        m->next[i] /= sum;
    return 0;
}

/* --- horizons ----------------------------------------------------------------------------------
 */

/* How a session goes on from its present age: the rates at which it ends, class by class. */
typedef struct Remaining {
    double end[CHAINS_AGES];  /* per microsecond */
    double usec[CHAINS_AGES]; /* still to come in that class, within the horizon */
} Remaining;

/* Replaces the rates at which sessions end by those that follow from what a history has seen. */
static void learn_ends(const Chains *c, const UserHistory *h, double *rates)
{
    for (unsigned i = 0; i < CHAINS_AGES; i++) {
        double usec = chains_value(c, h->age_time[i]) * (double)USEC_PER_MSEC;
        double prior_usec = END_PRIOR / rates[i];

        rates[i] = (chains_value(c, h->age_ended[i]) + END_PRIOR) / (usec + prior_usec);
    }
}

/* What the user's sessions do, as far as they are known; beyond that, what everybody's do. */
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
    learn_ends(c, user_of(m), ret->end);
    for (unsigned i = 0; i < CHAINS_AGES; i++) {
        usec_t end = MIN(chains_age_end(i), until), begin = MAX(age, start);

        ret->usec[i] = end == USEC_INFINITY ? (double)INFINITY
                       : begin >= end       ? 0
                                            : (double)(end - begin);
        start = chains_age_end(i);
    }
}

/* P(the application starts in the remaining time), as derived above: `rate` is q, `total` s_0 and
 * `later` q'. */
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
    return fmin(fmax(p, 0), 1);
}

/* Fills the column HORIZON_CHAINS of m->within. */
static void rate_horizon(Mixture *m, usec_t horizon)
{
    Remaining remaining;
    double total = 0;

    get_remaining(m, horizon, &remaining);
    for (size_t i = 1; i < m->n_rows; i++)
        total += m->rates[i][EXPERT_OWN];
    for (size_t i = 0; i < m->n_rows; i++) {
        double later = fmax(m->rates[i][EXPERT_RUN], m->rates[i][EXPERT_OWN]);

        m->within[i][HORIZON_CHAINS] =
                m->next[i] > 0 ? start_within(total * m->next[i], total, later, &remaining) : 0;
    }
}

/* Fills m->within: what each expert predicts for the horizon. 0 or -ENOMEM. */
static int compute_horizon(Mixture *m, usec_t horizon)
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
        uint32_t row = row_of(m, i);

        if (row == CHAINS_NONE || row >= m->n_rows)
            continue;
        columns[HORIZON_CHAINS][i] = m->within[row][HORIZON_CHAINS];
        next[i] = m->next[row];
    }
    r = horizons_compute(&m->horizons, &m->situation, &m->sequence, horizon, next, columns, &any);
    if (r < 0)
        return r;
    /* What the log does not know has not come in any of its sessions. */
    for (size_t i = 0; i < m->n_rows; i++) {
        double none = m->within[i][HORIZON_CHAINS] / (double)(m->situation.log->n + 1);

        m->within[i][HORIZON_NEXT] = any * m->next[i];
        m->within[i][HORIZON_AGE] = m->within[i][HORIZON_ALIKE] = m->within[i][HORIZON_AFTER] =
                none;
    }
    for (size_t i = 1; i < n; i++) {
        uint32_t row = row_of(m, i);

        for (unsigned k = HORIZON_AGE; row != CHAINS_NONE && row < m->n_rows && k < HORIZON_EXPERTS;
             k++)
            m->within[row][k] = columns[k][i];
    }
    return 0;
}

/* The weights of the experts' mixture alone. */
static void get_horizon_mixture(const Mixture *m, unsigned horizon, double *ret)
{
    const Chains *c = m->chains;

    expert_weights_horizon_init(horizon, ret);
    expert_weights_update(c->histories[0]->weights.horizon[horizon], HORIZON_EXPERTS, c->weight,
                          ret);
    expert_weights_update(user_of(m)->weights.horizon[horizon], HORIZON_EXPERTS, c->weight, ret);
}

/* The final weights of a class: those of the mixture and of each expert alone, by their losses. */
static void get_class_weights(const Mixture *m, unsigned horizon, double *ret)
{
    const Chains *c = m->chains;
    double posterior[HORIZON_LOSSES] = {0}, most = -INFINITY, sum = 0;
    bool asked[HORIZON_LOSSES];

    get_horizon_mixture(m, horizon, ret);
    expert_losses_apply(c->histories[0]->weights.losses[horizon], HORIZON_LOSSES, c->weight,
                        LOSS_RATE * OTHERS_SHARE, posterior);
    expert_losses_apply(user_of(m)->weights.losses[horizon], HORIZON_LOSSES, c->weight, LOSS_RATE,
                        posterior);
    /* An expert that had no weight at the beginning is not asked alone. */
    for (unsigned k = 0; k < HORIZON_LOSSES; k++) {
        asked[k] = k == HORIZON_EXPERTS || ret[k] > 0;
        most = asked[k] ? fmax(most, posterior[k]) : most;
    }
    for (unsigned k = 0; k < HORIZON_LOSSES; k++)
        sum += posterior[k] = asked[k] ? exp(posterior[k] - most) : 0;
    for (unsigned k = 0; k < HORIZON_EXPERTS; k++)
        ret[k] = (posterior[k] + posterior[HORIZON_EXPERTS] * ret[k]) / sum;
}

static void get_horizon_weights(const Mixture *m, usec_t horizon, double *ret)
{
    double share, next[HORIZON_EXPERTS];
    unsigned class = horizon_class(horizon, &share);

    get_class_weights(m, class, ret);
    get_class_weights(m, class + 1, next);
    for (unsigned k = 0; k < HORIZON_EXPERTS; k++)
        ret[k] = (1 - share) * ret[k] + share * next[k];
}

/* The probability that an application starts within the horizon of m->within, not corrected. */
static double chance_within(const Mixture *m, size_t row, const double *weights)
{
    double p = 0;

    for (unsigned k = 0; k < HORIZON_EXPERTS; k++)
        p += weights[k] * m->within[row][k];
    return p;
}

/* The same, corrected by how earlier promises came true. Promises of seconds are corrected slowly:
 * on recorded days the corrections of a user's first sessions raised the log loss from 31 to 40. */
static double correct_promise(const Mixture *m, usec_t horizon, double p)
{
    static const double start[HORIZON_CLASSES] = {6000, 200, 100};
    const UserHistory *h = user_of(m);
    double share;
    unsigned class = horizon_class(horizon, &share);

    return (1 - share) * expert_promises_correct(h->weights.promises[class], m->chains->weight,
                                                 start[class], p) +
           share * expert_promises_correct(h->weights.promises[class + 1], m->chains->weight,
                                           start[class + 1], p);
}

/* --- learning --------------------------------------------------------------------------------- */

/* An application has started: credits the experts, and updates the boosts. */
static void learn_next(Mixture *m, uint32_t started)
{
    Chains *c = m->chains;
    uint32_t row = user_history_find(c->histories[0], started);
    double p = 0;

    if (!m->learning || row == CHAINS_NONE || row >= m->n_rows)
        return;
    for (unsigned k = 0; k < EXPERTS; k++)
        p += m->weights[k] * m->chances[row][k];
    if (p <= 0)
        return;
    for (size_t i = 0; i < c->session.n_histories; i++)
        expert_weights_credit(c->session.histories[i]->weights.next[m->bucket], EXPERTS, c->weight,
                              m->chances[row], m->weights, 1);
    for (unsigned k = 0; k < EXPERTS; k++)
        m->boosts[k] = (1 - SHARE) * m->boosts[k] * m->chances[row][k] / p + SHARE;
}

/* The outcome of a snapshot is known: credits the experts of its horizon. */
static void learn_horizon(Mixture *m, Snapshot *s)
{
    Chains *c = m->chains;
    double weights[HORIZON_EXPERTS];

    s->pending = false;
    get_horizon_mixture(m, s->horizon, weights);
    for (size_t i = 0; i < s->n; i++) {
        double chances[HORIZON_LOSSES], least = 1, most = 0;

        if (s->chances[i][0] < 0)
            continue;
        for (unsigned k = 0; k < HORIZON_EXPERTS; k++) {
            chances[k] = s->came[i] ? s->chances[i][k] : 1 - s->chances[i][k];
            least = fmin(least, chances[k]);
            most = fmax(most, chances[k]);
        }
        for (size_t h = 0; h < c->session.n_histories; h++)
            expert_promises_add(c->session.histories[h]->weights.promises[s->horizon], c->weight,
                                s->promised[i], s->came[i]);
        chances[HORIZON_EXPERTS] = 0;
        for (unsigned k = 0; k < HORIZON_EXPERTS; k++)
            chances[HORIZON_EXPERTS] += weights[k] * chances[k];
        for (size_t h = 0; most - least > SPREAD_MIN && h < c->session.n_histories; h++) {
            ExpertWeights *w = &c->session.histories[h]->weights;

            expert_weights_credit(w->horizon[s->horizon], HORIZON_EXPERTS, c->weight, chances,
                                  weights, most - least);
            expert_losses_add(w->losses[s->horizon], HORIZON_LOSSES, c->weight, chances, 1);
        }
    }
}

/* Learns from the snapshots whose horizon is over, or at the end of a session from all. */
static void learn_horizons(Mixture *m, bool all)
{
    for (unsigned i = 0; i < HORIZON_CLASSES * SNAPSHOTS; i++) {
        Snapshot *x = &m->snapshots[i / SNAPSHOTS][i % SNAPSHOTS];

        if (x->pending && (all || x->until < m->chains->now))
            learn_horizon(m, x);
    }
}

static void note_start(Mixture *m, uint32_t id)
{
    uint32_t row = user_history_find(m->chains->histories[0], id);

    for (unsigned i = 0; row != CHAINS_NONE && i < HORIZON_CLASSES * SNAPSHOTS; i++) {
        Snapshot *x = &m->snapshots[i / SNAPSHOTS][i % SNAPSHOTS];

        if (x->pending && row < x->n)
            x->came[row] = true;
    }
}

static int take_snapshot(Mixture *m, Snapshot *s, unsigned class, usec_t horizon)
{
    const UserHistory *all = m->chains->histories[0];
    double weights[HORIZON_EXPERTS];
    int r = grow_array(&s->chances, &s->allocated_chances, m->n_rows, sizeof(*s->chances));

    if (r >= 0)
        r = grow_array(&s->promised, &s->allocated_promised, m->n_rows, sizeof(*s->promised));
    if (r >= 0)
        r = grow_array(&s->came, &s->allocated_came, m->n_rows, sizeof(*s->came));
    if (r >= 0)
        r = compute_horizon(m, horizon);
    if (r < 0)
        return r;
    memcpy(s->chances, m->within, m->n_rows * sizeof(*s->chances));
    memset(s->came, 0, m->n_rows * sizeof(*s->came));
    s->n = m->n_rows;
    s->chances[0][0] = -1;
    for (size_t i = 1; i < s->n; i++)
        if (chains_runs(m->chains, all->applications[i].id))
            s->chances[i][0] = -1;
    s->until = horizon < USEC_INFINITY ? m->chains->now + horizon : USEC_INFINITY;
    s->horizon = class;
    get_class_weights(m, class, weights);
    for (size_t i = 1; i < s->n; i++)
        s->promised[i] = chance_within(m, i, weights);
    s->pending = true;
    return 0;
}

/* Takes the snapshots that are due: of a horizon of time in its every quarter, and for the rest of
 * the session at the start 0, 1, 2, 4, 8, … */
static int take_snapshots(Mixture *m)
{
    static const usec_t horizons[HORIZON_SESSION] = {HORIZON_SECONDS_USEC, HORIZON_MINUTES_USEC};
    size_t n_starts = m->chains->session.n_starts;
    int r = 0;

    for (unsigned k = 0; r >= 0 && k < HORIZON_SESSION; k++) {
        unsigned i = 0;

        while (i < SNAPSHOTS_OF_TIME && m->snapshots[k][i].pending)
            i++;
        if (i == SNAPSHOTS_OF_TIME ||
            (i > 0 && m->chains->now - m->latest[k] < horizons[k] / SNAPSHOTS_OF_TIME))
            continue;
        r = take_snapshot(m, &m->snapshots[k][i], k, horizons[k]);
        m->latest[k] = m->chains->now;
    }
    for (unsigned i = 0; r >= 0 && i < SNAPSHOTS; i++)
        if (n_starts == (i == 0 ? 0 : (size_t)1 << (i - 1)) &&
            !m->snapshots[HORIZON_SESSION][i].pending)
            r = take_snapshot(m, &m->snapshots[HORIZON_SESSION][i], HORIZON_SESSION, USEC_INFINITY);
    return r;
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

    m->learning = false;
    if (m->chains->session.n_histories == 0 || !is_sampled(m->n_events++))
        return 0;
    r = compute_next(m);
    if (r >= 0)
        r = take_snapshots(m);
    if (r < 0)
        return r;
    m->learning = true;
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
    return begin_interval(m);
}

void mixture_end(Mixture *m, EventTime t)
{
    if (!m->chains->session.active)
        return;
    chains_set_time(m->chains, t);
    learn_horizons(m, true);
    chains_end(m->chains);
    m->user = NULL;
    m->learning = false;
    for (unsigned k = 0; k < EXPERTS; k++)
        m->boosts[k] = 1;
}

int mixture_start(Mixture *m, EventTime t, uint32_t id)
{
    int r = m->chains->session.active ? 0 : mixture_begin(m, t, UID_INVALID, true);

    if (r < 0)
        return r;
    if (chains_runs(m->chains, id))
        return chains_start(m->chains, id);
    chains_set_time(m->chains, t);
    learn_horizons(m, false);
    learn_next(m, id);
    r = chains_start(m->chains, id);
    if (r >= 0) {
        note_start(m, id);
        r = begin_interval(m);
    }
    return r < 0 ? r : 1;
}

int mixture_exit(Mixture *m, EventTime t, uint32_t id)
{
    int r;

    if (chains_processes(m->chains, id) != 1)
        return chains_exit(m->chains, id);
    chains_set_time(m->chains, t);
    learn_horizons(m, false);
    (void)chains_exit(m->chains, id);
    r = begin_interval(m);
    return r < 0 ? r : 1;
}

/* --- predicting ------------------------------------------------------------------------------- */

/* `rank`: the guesses of mixture_rank(). */
static int make_guesses(Mixture *m, usec_t horizon, bool rank, Guesses *ret)
{
    const UserHistory *all = m->chains->histories[0];
    double weights[HORIZON_EXPERTS];
    int r = compute_horizon(m, horizon);

    get_horizon_weights(m, horizon, weights);
    for (size_t i = 1; r >= 0 && i < m->n_rows; i++) {
        double p = chance_within(m, i, weights);

        if (chains_runs(m->chains, all->applications[i].id) || p <= 0)
            continue;
        p = correct_promise(m, horizon, p);
        r = guesses_add(ret, all->applications[i].id, rank ? (m->next[i] + p) / 2 : p);
    }
    if (r >= 0)
        guesses_sort(ret);
    return r;
}

static int prepare(Mixture *m, EventTime t)
{
    chains_set_time(m->chains, t);
    learn_horizons(m, false);
    return compute_next(m);
}

int mixture_predict(Mixture *m, EventTime t, const usec_t *horizons, size_t n, Guesses *ret)
{
    int r = prepare(m, t);

    for (size_t k = 0; k < n; k++)
        ret[k].n = 0;
    for (size_t k = 0; r >= 0 && k < n; k++)
        r = make_guesses(m, horizons[k], false, &ret[k]);
    for (size_t k = 0; r < 0 && k < n; k++)
        ret[k].n = 0;
    return r;
}

int mixture_rank(Mixture *m, EventTime t, usec_t horizon, Guesses *ret)
{
    int r = prepare(m, t);

    ret->n = 0;
    if (r >= 0)
        r = make_guesses(m, horizon, true, ret);
    if (r < 0)
        ret->n = 0;
    return r;
}
