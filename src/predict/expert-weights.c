/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "predict/expert-weights.h"

/* The weights before anything was learned, and the number of starts that they count as. */
#define EVIDENCE_START 5.0
static const double weight_start[EXPERTS] = {0.15, 0.35, 0.20, 0.05, 0.15, 0.10};

unsigned expert_bucket(double n_known)
{
    return n_known < 2 ? 0 : n_known < 6 ? 1 : n_known < 16 ? 2 : 3;
}

static double starts_of(DecayedSum sum, uint64_t now_weight)
{
    return decayed_sum_value(sum) / (double)now_weight / 1024;
}

void expert_weights_get(const ExpertWeights *w, unsigned bucket, uint64_t now_weight,
                        double ret[static EXPERTS])
{
    for (unsigned k = 0; k < EXPERTS; k++)
        ret[k] = (starts_of(w->credit[bucket][k], now_weight) + EVIDENCE_START * weight_start[k]) /
                 (starts_of(w->charge[bucket][k], now_weight) + EVIDENCE_START);
}

double expert_weights_apply(const double rates[static EXPERTS],
                            const double weights[static EXPERTS])
{
    double sum = 0;

    for (unsigned k = 0; k < EXPERTS; k++)
        sum += rates[k] * weights[k];
    return sum;
}

static void add_starts(DecayedSum *sum, double starts, uint64_t now_weight)
{
    double x = starts * 1024 * (double)now_weight;

    sum->current = decayed_sum_saturating_add(sum->current, x < 0x1p63 ? (uint64_t)(x + 0.5) : 0);
}

void expert_weights_charge(ExpertWeights *w, unsigned bucket, uint64_t now_weight,
                           const double starts[static EXPERTS])
{
    for (unsigned k = 0; k < EXPERTS; k++)
        add_starts(&w->charge[bucket][k], starts[k], now_weight);
}

void expert_weights_credit(ExpertWeights *w, unsigned bucket, uint64_t now_weight,
                           const double rates[static EXPERTS], const double weights[static EXPERTS])
{
    double sum = expert_weights_apply(rates, weights);

    for (unsigned k = 0; sum > 0 && k < EXPERTS; k++)
        add_starts(&w->credit[bucket][k], weights[k] * rates[k] / sum, now_weight);
}

void expert_weights_sums(ExpertWeights *w, DecayedSum *ret[static EXPERT_SUMS])
{
    for (unsigned i = 0; i < EXPERT_BUCKETS * EXPERTS; i++) {
        ret[2 * i] = &w->credit[i / EXPERTS][i % EXPERTS];
        ret[2 * i + 1] = &w->charge[i / EXPERTS][i % EXPERTS];
    }
}
