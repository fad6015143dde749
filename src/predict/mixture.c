/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The mixture handles every event in three steps. It learns from the predictions whose outcome is
 * now known, lets the chains count the event, and makes new predictions to learn from. */

#include "predict/mixture-internal.h"

#define UTC_OFFSET_MAX_SEC ((int64_t)24 * 60 * 60)

int mixture_new(Chains *chains, Mixture **ret)
{
    Mixture *m = calloc(1, sizeof(*m));

    if (!m)
        return -ENOMEM;
    if (chains_end(chains) < 0) {
        free(m);
        return -ENOMEM;
    }
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
    free(m->rows);
    free(m->present);
    free(m->logged_runs);
    free(m->columns);
    sequence_done(&m->sequence);
    horizons_done(&m->horizons);
    mixture_snapshots_done(m);
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

/* Returns true if the weights learn from predictions that are made after the n-th event. */
static bool is_sampled(uint64_t n)
{
    return n < MIXTURE_LEARN_ALL || n % (n / MIXTURE_LEARN_ALL) == 0;
}

/* Makes the predictions from which the weights learn when the next event comes. */
static int begin_interval(Mixture *m)
{
    int r;

    m->learning = false;
    if (m->chains->session.n_histories == 0 || !is_sampled(m->n_events++))
        return 0;
    r = mixture_next_compute(m);
    if (r >= 0)
        r = mixture_snapshots_take(m);
    if (r < 0)
        return r;
    m->learning = true;
    return 0;
}

void mixture_set_utc_offset(Mixture *m, int64_t seconds)
{
    m->utc_offset_sec = MAX(-UTC_OFFSET_MAX_SEC, MIN(seconds, UTC_OFFSET_MAX_SEC));
}

int mixture_begin(Mixture *m, EventTime t, uint32_t user, bool learn)
{
    int r = mixture_end(m, t);

    if (r < 0)
        return r;
    chains_set_time(m->chains, t);
    r = learn ? chains_begin(m->chains, user) : chains_follow(m->chains);
    if (r < 0)
        return r;
    m->user = user == UID_INVALID ? NULL : chains_find_history(m->chains, user);
    return begin_interval(m);
}

int mixture_end(Mixture *m, EventTime t)
{
    int r;

    if (!m->chains->session.active)
        return 0;
    chains_set_time(m->chains, t);
    mixture_snapshots_learn(m, true);
    r = chains_end(m->chains);
    m->user = NULL;
    m->learning = false;
    for (unsigned k = 0; k < EXPERTS; k++)
        m->boosts[k] = 1;
    return r;
}

int mixture_start(Mixture *m, EventTime t, uint32_t id)
{
    int r = m->chains->session.active ? 0 : mixture_begin(m, t, UID_INVALID, true);

    if (r < 0)
        return r;
    if (chains_runs(m->chains, id))
        return chains_start(m->chains, id);
    chains_set_time(m->chains, t);
    mixture_snapshots_learn(m, false);
    mixture_next_learn(m, id);
    r = chains_start(m->chains, id);
    if (r >= 0) {
        mixture_snapshots_note_start(m, id);
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
    mixture_snapshots_learn(m, false);
    (void)chains_exit(m->chains, id);
    r = begin_interval(m);
    return r < 0 ? r : 1;
}

/* --- predicting ------------------------------------------------------------------------------- */

/* Returns the score of mixture_rank(). With a larger weight of P(next), whole applications are
 * selected more often (docs/predictors.md, Tight budgets). */
static double rank_score(double next, double within)
{
    return (4 * next + within) / 5;
}

/* Adds the guesses for one horizon to *ret. If `rank` is true, these are the guesses of
 * mixture_rank(). If it is false, they are those of mixture_predict(). */
static int make_guesses(Mixture *m, usec_t horizon, bool rank, Guesses *ret)
{
    const UserHistory *all = m->chains->histories[0];
    double weights[HORIZON_EXPERTS];
    int r = mixture_horizon_compute(m, horizon);

    mixture_horizon_weights(m, horizon, weights);
    for (size_t i = 1; r >= 0 && i < m->n_rows; i++) {
        double p = mixture_horizon_chance(m, i, weights);

        if (chains_runs(m->chains, all->applications[i].id) || p <= 0)
            continue;
        p = mixture_horizon_correct(m, horizon, p);
        r = guesses_add(ret, all->applications[i].id, rank ? rank_score(m->next[i], p) : p);
    }
    if (r >= 0)
        guesses_sort(ret);
    return r;
}

static int prepare(Mixture *m, EventTime t)
{
    chains_set_time(m->chains, t);
    mixture_snapshots_learn(m, false);
    return mixture_next_compute(m);
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
