/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "predict/expert.h"

/* Rates are shrunk as if each application had not run for this time before it was first seen. */
#define IDLE_START_USEC (600.0 * (double)USEC_PER_SEC)

/* Returns the mean of a rate after `starts` starts in the time `usec`: the posterior mean of a
 * Poisson rate under a gamma prior. The prior has the mean `rate` and the weight of the time
 * `prior_usec`. */
static double shrink(double starts, double usec, double rate, double prior_usec)
{
    return (starts + rate * prior_usec) / (usec + prior_usec);
}

double expert_prior_usec(const Chains *c, const UserHistory *h)
{
    double starts = 1, usec = IDLE_START_USEC + chains_time_usec(c, h);

    for (size_t i = 1; i < h->n_applications; i++)
        starts += chains_value(c, h->applications[i].starts);
    return EXPERT_PRIOR / (starts / usec);
}

static const ChainsPair *chain_of(const UserHistory *h, const Neighbour *neighbour)
{
    return neighbour->pair == CHAINS_NONE ? NULL : &h->pairs[neighbour->pair];
}

double expert_known_successors(const Situation *s)
{
    const ChainsApplication *l = &s->history->applications[s->last];
    double n = chains_value(s->chains, l->next_self);

    for (uint32_t i = 0; i < l->n_neighbours; i++) {
        const ChainsPair *p = chain_of(s->history, &l->neighbours[i]);

        if (p)
            n += chains_value(s->chains, p->next[l->neighbours[i].other == p->b]);
    }
    return n;
}

static void rate_own(const Situation *s, const double *own, double *rates)
{
    for (uint32_t i = 1; i < s->history->n_applications; i++) {
        ChainsTotals t;

        if (s->runs[i])
            continue;
        chains_totals(s->chains, s->history, i, &t);
        rates[i] = t.starts / (t.off_usec + IDLE_START_USEC);
    }
}

static void rate_last(const Situation *s, const double *own, double *rates)
{
    const Chains *c = s->chains;
    const UserHistory *h = s->history;
    const ChainsApplication *l = &h->applications[s->last];
    double usec = chains_usec(c, l->last) + s->last_usec;

    for (uint32_t i = 1; i < h->n_applications; i++)
        if (!s->runs[i])
            rates[i] = shrink(0, usec, own[i], s->prior_usec);
    for (uint32_t i = 0; i < l->n_neighbours; i++) {
        const ChainsPair *p = chain_of(h, &l->neighbours[i]);
        uint32_t o = l->neighbours[i].other;

        if (p && o != CHAINS_BEGIN && !s->runs[o])
            rates[o] = shrink(chains_value(c, p->next[o == p->b]),
                              max_double(usec - chains_usec(c, p->last[o == p->b]), 0), own[o],
                              s->prior_usec);
    }
    if (s->last != CHAINS_BEGIN && !s->runs[s->last])
        rates[s->last] = shrink(chains_value(c, l->next_self),
                                max_double(usec - chains_usec(c, l->last_self), 0), own[s->last],
                                s->prior_usec);
}

/* Adds the share of one running application to the mean over all running ones. A pair without a
 * chain is evidence as well: in all windows after the starts of the one, the other has started at
 * most once in total. */
static void rate_concurrent(const Situation *s, uint32_t running, double share, const double *own,
                            double *rates)
{
    const Chains *c = s->chains;
    const UserHistory *h = s->history;
    const ChainsApplication *a = &h->applications[running];
    double seen_usec;
    ChainsTotals t;

    chains_totals(c, h, running, &t);
    seen_usec = t.starts * (double)c->window_usec;
    for (uint32_t i = 1; i < h->n_applications; i++)
        if (!s->runs[i])
            rates[i] += (shrink(0, seen_usec, own[i], s->prior_usec) - own[i]) * share;
    for (uint32_t i = 0; i < a->n_neighbours; i++) {
        const ChainsPair *p = chain_of(h, &a->neighbours[i]);
        uint32_t o = a->neighbours[i].other;
        unsigned ia = running > o; /* the place of `running` in the pair */
        double usec, rate;

        if (!p || o == CHAINS_BEGIN || s->runs[o])
            continue;
        /* dwell in the state in which `running` runs and `o` does not, as in chains_states() */
        usec = max_double(t.on_usec - (chains_usec(c, p->before_on[ia]) + chains_usec(c, p->both)),
                          0);
        rate = shrink(chains_value(c, p->starts[!ia]), usec, own[o], s->prior_usec);
        rates[o] += (rate - shrink(0, seen_usec, own[o], s->prior_usec)) * share;
    }
}

static void rate_run(const Situation *s, const double *own, double *rates)
{
    for (uint32_t i = 1; i < s->history->n_applications; i++)
        rates[i] = s->runs[i] ? 0 : own[i];
    for (size_t k = 0; k < s->n_running; k++)
        rate_concurrent(s, s->running[k], 1 / (double)s->n_running, own, rates);
    for (uint32_t i = 1; i < s->history->n_applications; i++)
        rates[i] = max_double(rates[i], 0);
}

const Expert expert_own = {"own", rate_own};
const Expert expert_last = {"last", rate_last};
const Expert expert_run = {"run", rate_run};
