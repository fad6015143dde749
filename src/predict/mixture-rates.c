/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "predict/mixture-internal.h"

#include <string.h>

/* Rates are shrunk as if each application had been idle this long before it was known. */
#define IDLE_START_USEC (600.0 * (double)USEC_PER_SEC)

/* What a history's rates depend on, by its own numbers. */
typedef struct Situation {
    uint32_t last;
    double last_usec; /* for how long, in this session */
    const uint32_t *running;
    size_t n_running;
} Situation;

/* Where an application's rates of this history go; NULL if everybody's history does not know it. */
static double *rates_of(const Mixture *m, const UserHistory *h, uint32_t application,
                        unsigned offset)
{
    uint32_t i = chains_find(m->chains->histories[0], h->applications[application].id);

    return i == CHAINS_NONE || i >= m->n_rates ? NULL : m->rates[i] + offset;
}

static const ChainsPair *chain_of(const UserHistory *h, const Neighbour *neighbour)
{
    return neighbour->pair == CHAINS_NONE ? NULL : &h->pairs[neighbour->pair];
}

/* All starts of a history per microsecond: how fast contexts change there. */
static double total_rate(const Chains *c, const UserHistory *h)
{
    double starts = 1, usec = IDLE_START_USEC + chains_time_usec(c, h);

    for (size_t i = 1; i < h->n_applications; i++)
        starts += chains_value(c, h->applications[i].starts);
    return starts / usec;
}

static void rate_own(Mixture *m, const UserHistory *h, unsigned offset)
{
    for (uint32_t i = 1; i < h->n_applications; i++) {
        double *q = rates_of(m, h, i, offset);
        ChainsTotals t;

        if (!q || m->running[i])
            continue;
        chains_totals(m->chains, h, i, &t);
        q[EXPERT_OWN] = q[EXPERT_RUN] = t.starts / (t.off_usec + IDLE_START_USEC);
    }
}

/* Returns how many starts after the last one are known of. */
static double rate_last(Mixture *m, const UserHistory *h, unsigned offset, const Situation *s,
                        double prior_usec)
{
    const ChainsApplication *l = &h->applications[s->last];
    double ms = (double)USEC_PER_MSEC;
    double usec = chains_value(m->chains, l->last) * ms + s->last_usec;
    double known = chains_value(m->chains, l->next_self);

    for (uint32_t i = 1; i < h->n_applications; i++) {
        double *q = rates_of(m, h, i, offset);

        if (q && !m->running[i])
            q[EXPERT_LAST] = mixture_shrink(0, usec, q[EXPERT_OWN], prior_usec);
    }
    for (uint32_t i = 0; i < l->n_neighbours; i++) {
        const ChainsPair *p = chain_of(h, &l->neighbours[i]);
        uint32_t o = l->neighbours[i].other;
        double next, *q;

        if (!p)
            continue;
        next = chains_value(m->chains, p->next[o == p->b]);
        known += next;
        q = o == CHAINS_BEGIN || m->running[o] ? NULL : rates_of(m, h, o, offset);
        if (q)
            q[EXPERT_LAST] = mixture_shrink(
                    next, fmax(usec - chains_value(m->chains, p->last[o == p->b]) * ms, 0),
                    q[EXPERT_OWN], prior_usec);
    }
    if (s->last != CHAINS_BEGIN && !m->running[s->last]) {
        double *q = rates_of(m, h, s->last, offset);

        if (q)
            q[EXPERT_LAST] =
                    mixture_shrink(chains_value(m->chains, l->next_self),
                                   fmax(usec - chains_value(m->chains, l->last_self) * ms, 0),
                                   q[EXPERT_OWN], prior_usec);
    }
    return known;
}

/* The mean over all that run. No chain is evidence too: in the window after each start of the one,
 * the other has not started twice. */
static void rate_run(Mixture *m, const UserHistory *h, unsigned offset, const Situation *s,
                     double prior_usec)
{
    double ms = (double)USEC_PER_MSEC, share = 1 / (double)MAX(s->n_running, (size_t)1);

    for (size_t k = 0; k < s->n_running; k++) {
        const ChainsApplication *a = &h->applications[s->running[k]];
        double seen_usec;
        ChainsTotals t;

        chains_totals(m->chains, h, s->running[k], &t);
        seen_usec = t.starts * (double)m->chains->window_usec;
        for (uint32_t i = 1; i < h->n_applications; i++) {
            double *q = m->running[i] ? NULL : rates_of(m, h, i, offset);

            if (q)
                q[EXPERT_RUN] +=
                        (mixture_shrink(0, seen_usec, q[EXPERT_OWN], prior_usec) - q[EXPERT_OWN]) *
                        share;
        }
        for (uint32_t i = 0; i < a->n_neighbours; i++) {
            const ChainsPair *p = chain_of(h, &a->neighbours[i]);
            uint32_t o = a->neighbours[i].other;
            unsigned ia = s->running[k] > o; /* a's place in the pair */
            double usec, rate, *q;

            if (!p || o == CHAINS_BEGIN || m->running[o])
                continue;
            q = rates_of(m, h, o, offset);
            if (!q)
                continue;
            /* dwell in "a runs, o does not", as chains_states() has it */
            usec = fmax(t.on_usec - (chains_value(m->chains, p->before_on[ia]) +
                                     chains_value(m->chains, p->both)) *
                                            ms,
                        0);
            rate = mixture_shrink(chains_value(m->chains, p->starts[!ia]), usec, q[EXPERT_OWN],
                                  prior_usec);
            q[EXPERT_RUN] +=
                    (rate - mixture_shrink(0, seen_usec, q[EXPERT_OWN], prior_usec)) * share;
        }
    }
    for (uint32_t i = 1; i < h->n_applications; i++) {
        double *q = m->running[i] ? NULL : rates_of(m, h, i, offset);

        if (q)
            q[EXPERT_RUN] = fmax(q[EXPERT_RUN], 0);
    }
}

/* Fills one history's three columns. Returns what rate_last() does. */
static int rate_history(Mixture *m, const UserHistory *h, unsigned offset, const Situation *s,
                        double *ret_known)
{
    double prior_usec = MIXTURE_PRIOR / total_rate(m->chains, h);
    int r = grow_array(&m->running, &m->allocated_running, h->n_applications, sizeof(*m->running));

    if (r < 0)
        return r;
    memset(m->running, 0, h->n_applications * sizeof(*m->running));
    for (size_t i = 0; i < s->n_running; i++)
        m->running[s->running[i]] = true;
    rate_own(m, h, offset);
    *ret_known = rate_last(m, h, offset, s, prior_usec);
    rate_run(m, h, offset, s, prior_usec);
    return 0;
}

static Situation situation_of(const Chains *c, const UserHistory *h)
{
    return (Situation){
            .last = h->last,
            .last_usec =
                    h->in_session && c->now > h->last_since ? (double)(c->now - h->last_since) : 0,
            .running = h->running,
            .n_running = h->n_running,
    };
}

/* A given state in the numbers of one history; `running` has room for all of the state's. */
static Situation situation_given(const UserHistory *h, const PredictorState *state,
                                 uint32_t *running)
{
    Situation s = {.last = chains_find(h, state->last), .running = running};

    for (size_t i = 0; i < state->n_running; i++) {
        uint32_t a = chains_find(h, state->running[i]);
        bool known = a == CHAINS_NONE;

        for (size_t j = 0; !known && j < s.n_running; j++)
            known = running[j] == a;
        if (!known)
            running[s.n_running++] = a;
    }
    if (s.last == CHAINS_NONE)
        s.last = CHAINS_BEGIN;
    return s;
}

static unsigned bucket_of(double known)
{
    return known < 2 ? 0 : known < 6 ? 1 : known < 16 ? 2 : 3;
}

int mixture_compute_rates(Mixture *m, const UserHistory *user, const PredictorState *state)
{
    const UserHistory *all = m->chains->histories[0], *histories[2] = {user, all};
    _cleanup_free_ uint32_t *running = NULL;
    double known[2] = {0, 0};
    int r;

    m->n_rates = all->n_applications;
    r = grow_array(&m->rates, &m->allocated_rates, m->n_rates, sizeof(*m->rates));
    if (r < 0)
        return r;
    memset(m->rates, 0, m->n_rates * sizeof(*m->rates));
    if (state && state->n_running > 0) {
        running = calloc(state->n_running, sizeof(*running));
        if (!running)
            return -ENOMEM;
    }
    for (unsigned i = 0; i < 2; i++) {
        Situation s;

        if (!histories[i])
            continue;
        s = state ? situation_given(histories[i], state, running)
                  : situation_of(m->chains, histories[i]);
        r = rate_history(m, histories[i], i * EXPERTS_OF_HISTORY, &s, &known[i]);
        if (r < 0)
            return r;
    }
    /* A user nobody has seen yet does what everybody does. */
    if (!user || decayed_sum_is_zero(user->time)) {
        for (size_t i = 0; i < m->n_rates; i++)
            for (unsigned k = 0; k < EXPERTS_OF_HISTORY; k++)
                m->rates[i][k] = fmax(m->rates[i][k], m->rates[i][EXPERTS_OF_HISTORY + k]);
        known[0] = known[1];
    }
    m->bucket = bucket_of(known[0]);
    return 0;
}
