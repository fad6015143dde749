/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The distribution of the next start.
 *
 * Each expert k gives a distribution p_k of the application that starts next. The mixture's
 * distribution is p = sum over k of w_k p_k. When application i starts, expert k has
 * caused it with probability w_k p_k(i) / p(i). This is the expectation step for the proportions of
 * a mixture. These probabilities are credited to the experts, and the decayed sums of the credits
 * give the weights at the beginning of a session (expert-weights.h). These weights converge to the
 * best fixed weights, but they follow a change of habits too slowly. Within a session the weights
 * are therefore multiplied by boosts b_k, which follow the Fixed Share rule (Herbster and Warmuth
 * 1998): after the start of i,
 *   b_k = (1 - SHARE) b_k p_k(i) / p(i) + SHARE.
 * The first term is Bayes's rule. The second term moves a share of the weights back to those at the
 * beginning of the session (mixing past posteriors: Bousquet and Warmuth 2002), so that every
 * expert keeps a weight. */

#include "predict/expert.h"
#include "predict/mixture-internal.h"

#include <string.h>

static const Expert *const experts[EXPERTS_OF_HISTORY] = {
        [EXPERT_OWN] = &expert_own,
        [EXPERT_LAST] = &expert_last,
        [EXPERT_RUN] = &expert_run,
};

/* The share of the boosts that each start moves back to 1. */
#define SHARE 0.1

/* --- the experts of the chains ------------------------------------------------------------ */

/* Makes room for the rates of one history. */
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

/* Returns the present state with the application numbers of one history. Applications that the
 * history does not contain are left out. */
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

/* Computes the rates of one history's experts, and stores them in m->rates from `column` on. */
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

/* Computes the rates of the chains, and from them the chances that an application starts next. */
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
    if (mixture_is_stranger(m)) {
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

/* --- the experts of the log ------------------------------------------------------------ */

/* Sets m->rows for the applications of a history. Returns 0 or -ENOMEM. */
static int set_rows(Mixture *m, const UserHistory *h)
{
    const UserHistory *all = m->chains->histories[0];
    int r = grow_array(&m->rows, &m->allocated_rows, h->n_applications, sizeof(*m->rows));

    for (size_t i = 0; r >= 0 && i < h->n_applications; i++) {
        uint32_t row = user_history_find(all, h->applications[i].id);

        m->rows[i] = row < m->n_rows ? row : CHAINS_NONE;
    }
    return r;
}

/* Chooses the history whose log is counted. Describes the present session with the application
 * numbers of that history. */
static int set_situation(Mixture *m)
{
    const Chains *c = m->chains;
    const ChainsSession *s = &c->session;
    const UserHistory *h =
            mixture_is_stranger(m) || m->user->log.n == 0 ? c->histories[0] : m->user;
    size_t n_starts = s->active ? s->n_starts : 0, n_latest = s->active ? s->n_latest : 0;
    LoggedSession present = {.begin_msec = s->begin_realtime_msec};
    int r = grow_array(&m->present, &m->allocated_present, n_starts + 1, sizeof(*m->present));

    if (r >= 0)
        r = set_rows(m, h);
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
            .utc_offset_msec = m->utc_offset_sec * 1000,
            .halflife_msec = MAX(c->halflife_usec / USEC_PER_MSEC, (uint64_t)1),
            .age_msec = s->active ? (c->now - s->begin) / USEC_PER_MSEC : 0,
            .quiet_msec = s->active ? (c->now - s->last_since) / USEC_PER_MSEC : 0,
    };
    present.length_msec = (uint32_t)MIN(m->situation.age_msec, UINT32_MAX);
    m->situation.present = present;
    /* CHAINS_NONE equals SEQUENCE_NONE: an unknown application has no successors in the log. */
    for (size_t i = 0; i < ELEMENTSOF(m->situation.before); i++)
        m->situation.before[i] = i < n_latest    ? user_history_find(h, s->latest[i])
                                 : i == n_latest ? CHAINS_BEGIN
                                                 : SEQUENCE_NONE;
    return 0;
}

static int count_log(Mixture *m)
{
    int r = set_situation(m);

    if (r >= 0)
        r = sequence_compute(&m->sequence, &m->situation);
    for (unsigned k = 0; r >= 0 && k < SEQUENCES; k++) {
        const double *chances = sequence_chances(&m->sequence, &m->situation, k);

        for (size_t i = 1; i < m->situation.n_applications; i++) {
            uint32_t row = m->rows[i];

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

/* Sets the weights to the learned weights times the boosts. */
static void set_weights(Mixture *m)
{
    const Chains *c = m->chains;
    double sum = 0;

    expert_weights_next_init(m->weights);
    expert_weights_update(c->histories[0]->weights.next[m->bucket], EXPERTS, c->weight, m->weights);
    expert_weights_update(mixture_history(m)->weights.next[m->bucket], EXPERTS, c->weight,
                          m->weights);
    for (unsigned k = 0; k < EXPERTS; k++)
        sum += m->weights[k] *= m->boosts[k];
    for (unsigned k = 0; k < EXPERTS; k++)
        m->weights[k] /= sum;
}

int mixture_next_compute(Mixture *m)
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

void mixture_next_learn(Mixture *m, uint32_t started)
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
