/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Learning from the outcomes of predictions for horizons.
 *
 * A snapshot holds the predictions of the experts for a horizon until the outcome is known. The
 * outcome then credits the experts of the horizon, as a start credits the experts of the next start
 * (mixture-next.c). A credit is multiplied by the difference between the largest and the smallest
 * of the experts' predictions. An application on which the experts agree does not show which expert
 * is better. */

#include "predict/mixture-internal.h"

#include <math.h>
#include <string.h>

/* If the predictions for an application differ by less than this, its outcome adds neither credits
 * nor losses. */
#define SPREAD_MIN 0.001

void mixture_snapshots_done(Mixture *m)
{
    for (unsigned i = 0; i < HORIZON_CLASSES * SNAPSHOTS; i++) {
        Snapshot *x = &m->snapshots[i / SNAPSHOTS][i % SNAPSHOTS];

        free(x->chances);
        free(x->promised);
        free(x->came);
    }
}

/* Credits the experts with the outcome of a snapshot. */
static void learn_horizon(Mixture *m, Snapshot *s)
{
    Chains *c = m->chains;
    double weights[HORIZON_EXPERTS], promises[PROMISE_BINS][PROMISE_SUMS] = {0};

    s->pending = false;
    mixture_class_mixture(m, s->horizon, weights);
    for (size_t i = 0; i < s->n; i++) {
        double chances[HORIZON_LOSSES], least = 1, most = 0;

        if (s->chances[i][0] < 0)
            continue;
        for (unsigned k = 0; k < HORIZON_EXPERTS; k++) {
            chances[k] = s->came[i] ? s->chances[i][k] : 1 - s->chances[i][k];
            least = min_double(least, chances[k]);
            most = max_double(most, chances[k]);
        }
        expert_promises_count(promises, s->promised[i], s->came[i]);
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
    for (size_t h = 0; h < c->session.n_histories; h++)
        expert_promises_add(c->session.histories[h]->weights.promises[s->horizon], c->weight,
                            promises);
}

void mixture_snapshots_learn(Mixture *m, bool all)
{
    for (unsigned i = 0; i < HORIZON_CLASSES * SNAPSHOTS; i++) {
        Snapshot *x = &m->snapshots[i / SNAPSHOTS][i % SNAPSHOTS];

        if (x->pending && (all || x->until < m->chains->now))
            learn_horizon(m, x);
    }
}

void mixture_snapshots_note_start(Mixture *m, uint32_t id)
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
        r = mixture_horizon_compute(m, horizon);
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
    mixture_class_weights(m, class, weights);
    for (size_t i = 1; i < s->n; i++)
        s->promised[i] = mixture_horizon_chance(m, i, weights);
    s->pending = true;
    return 0;
}

int mixture_snapshots_take(Mixture *m)
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
