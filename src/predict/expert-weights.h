/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The learned weights of the mixture's experts (mixture.h). Pure.
 *
 * While time passes, an expert is charged with the starts that it expects. When an application
 * starts, each expert is credited with its share of the rate that the mixture had predicted for
 * that application. The weight of an expert is credit over charge: this is expectation maximisation
 * for the rate of a Poisson process, one step for each event (mixture.c derives it). Both are
 * decayed sums, so weights that were learned on two machines merge like everything else.
 *
 * Weights are kept apart by the number of starts that are known to have followed the application
 * that started last: a context with little evidence and a well-known one trust different experts.
 */

#include "base/decayed-sum.h"

/* The experts of one history (expert.h), and of the two that are asked: the user's, then
 * everybody's. */
enum {
    EXPERT_OWN,
    EXPERT_LAST,
    EXPERT_RUN,
    EXPERTS_OF_HISTORY,
};
#define EXPERTS        (2 * EXPERTS_OF_HISTORY)
#define EXPERT_BUCKETS 4
#define EXPERT_SUMS    (2 * EXPERT_BUCKETS * EXPERTS)

typedef struct ExpertWeights {
    DecayedSum credit[EXPERT_BUCKETS][EXPERTS]; /* starts, in 1/1024 */
    DecayedSum charge[EXPERT_BUCKETS][EXPERTS]; /* starts that were expected, in 1/1024 */
} ExpertWeights;

/* The bucket for that many known successors of the application that started last. */
unsigned expert_bucket(double n_known);

/* The weights in a bucket. `now_weight` is the weight of an observation made now. Each expert
 * begins with a fixed weight, which counts as EVIDENCE_START starts. */
void expert_weights_get(const ExpertWeights *w, unsigned bucket, uint64_t now_weight,
                        double ret[static EXPERTS]);

/* Charges every expert of a bucket with the starts that it expected. */
void expert_weights_charge(ExpertWeights *w, unsigned bucket, uint64_t now_weight,
                           const double starts[static EXPERTS]);

/* Credits the experts of a bucket with one start. `rates`: what each expert had predicted for it;
 * `weights`: those of expert_weights_get(). The weights stay if no expert had predicted it. */
void expert_weights_credit(ExpertWeights *w, unsigned bucket, uint64_t now_weight,
                           const double rates[static EXPERTS],
                           const double weights[static EXPERTS]);

/* The sum of the experts' rates, each times its weight. */
double expert_weights_apply(const double rates[static EXPERTS],
                            const double weights[static EXPERTS]);

/* All sums, in the order of the JSON format. */
void expert_weights_sums(ExpertWeights *w, DecayedSum *ret[static EXPERT_SUMS]);
