/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The learned weights of the mixture's experts (mixture.h). Pure.
 *
 * An expert is a distribution of the next start, or a probability for each application within a
 * horizon. Before the outcome is known, the mixture gives it a probability, to which each expert
 * contributes a share. When the outcome is known, each expert is credited with its share. This is
 * one step of expectation maximisation for the proportions of a mixture (Dempster, Laird and Rubin
 * 1977). The weight of an expert is its share of the credits. Credits are decayed sums, so weights
 * that were learned on two machines merge like everything else.
 *
 * These weights converge to those of the best mixture, but slowly if the experts differ little. For
 * a horizon the log losses of each expert and of the mixture are therefore summed, too. The final
 * weights are the posterior probabilities that each expert, or the mixture, predicts best (Vovk
 * 1990: the aggregating algorithm). A predictor with larger losses loses its weight exponentially.
 *
 * Weights of the next start are stored separately by how many starts are known to have followed the
 * application that started last. A little-known context and a well-known one call for different
 * experts. Weights of horizons are stored separately by the class of the horizon. */

#include "base/time-util.h"
#include "chains/decayed-sum.h"

/* The experts of the chains of one history (expert.h). The mixture has them twice
 * (EXPERTS_OF_CHAINS): first those of the user's history, then those of everybody's. */
enum {
    EXPERT_OWN,
    EXPERT_LAST,
    EXPERT_RUN,
    EXPERTS_OF_HISTORY,
};
#define EXPERTS_OF_CHAINS (2 * EXPERTS_OF_HISTORY)

/* The experts that count starts in the log of sessions (sequence.h). */
enum {
    SEQUENCE_ANY,
    SEQUENCE_ANY_RECENT,
    SEQUENCE_ONE,
    SEQUENCE_ONE_RECENT,
    SEQUENCE_TWO,
    SEQUENCE_TWO_RECENT,
    SEQUENCE_THREE,
    SEQUENCE_DAY,
    SEQUENCE_HOUR,
    SEQUENCE_ALIKE,
    SEQUENCE_UNUSED,
    SEQUENCES,
};
#define EXPERTS        (EXPERTS_OF_CHAINS + SEQUENCES)
#define EXPERT_BUCKETS 4

/* The experts of a horizon (horizon.h). */
enum {
    HORIZON_CHAINS,
    HORIZON_NEXT,
    HORIZON_AGE,
    HORIZON_ALIKE,
    HORIZON_AFTER,
    HORIZON_EXPERTS,
};
enum {
    HORIZON_SECONDS,
    HORIZON_MINUTES,
    HORIZON_SESSION, /* until the session ends */
    HORIZON_CLASSES,
};

/* The losses of each expert and of their mixture are summed. */
#define HORIZON_LOSSES (HORIZON_EXPERTS + 1)
/* Promises (predicted probabilities of a horizon) are counted in ten bins of equal width. */
#define PROMISE_BINS 10
enum {
    PROMISE_N,    /* snapshots with a promise in the bin */
    PROMISE_SUM,  /* sum of the mean probabilities of these promises */
    PROMISE_CAME, /* sum of the shares of them that came true */
    PROMISE_SUMS,
};
#define EXPERT_SUMS             \
    (EXPERT_BUCKETS * EXPERTS + \
     HORIZON_CLASSES * (HORIZON_EXPERTS + HORIZON_LOSSES + PROMISE_BINS * PROMISE_SUMS))

/* The sums of credits, of losses (in nats) and of promises. A credit of 1 counts as 1024
 * milliseconds in a sum of times (chains/decayed-sum.h). */
typedef struct ExpertWeights {
    DecayedSum next[EXPERT_BUCKETS][EXPERTS];
    DecayedSum horizon[HORIZON_CLASSES][HORIZON_EXPERTS];
    DecayedSum losses[HORIZON_CLASSES][HORIZON_LOSSES];
    DecayedSum promises[HORIZON_CLASSES][PROMISE_BINS][PROMISE_SUMS];
} ExpertWeights;

/* Returns the bucket for `n_known` known successors of the application that started last. */
unsigned expert_bucket(double n_known);

/* Returns the class of the horizon. *ret_share_of_next is the share of the next class: horizons
 * between those of the snapshots (mixture-snapshots.c) are interpolated. */
unsigned horizon_class(usec_t horizon, double *ret_share_of_next);

/* The horizons for which the classes are learned. */
#define HORIZON_SECONDS_USEC (20 * USEC_PER_SEC)
#define HORIZON_MINUTES_USEC (600 * USEC_PER_SEC)
/* A longer horizon is treated like the rest of the session. */
#define HORIZON_SESSION_USEC (6000 * USEC_PER_SEC)

/* Sets the weights that count before anything was learned. They add up to 1. `horizon`: the
 * class. */
void expert_weights_next_init(double ret[static EXPERTS]);
void expert_weights_horizon_init(unsigned horizon, double ret[static HORIZON_EXPERTS]);

/* Replaces the weights by those that result from adding n credits, where the old weights count as a
 * fixed number of outcomes. `now_weight` is the weight of an observation made now. */
void expert_weights_update(const DecayedSum *credits, unsigned n, uint64_t now_weight,
                           double *weights);

/* Credits n experts with an outcome. chances[k] is the probability that expert k gave it; `amount`
 * is the weight of the outcome, usually 1. Credits nothing if every expert gave the outcome the
 * probability 0. */
void expert_weights_credit(DecayedSum *credits, unsigned n, uint64_t now_weight,
                           const double *chances, const double *weights, double amount);

/* Adds the loss of each of n predictors for an outcome; chances[k] is the probability that
 * predictor k gave it. */
void expert_losses_add(DecayedSum *losses, unsigned n, uint64_t now_weight, const double *chances,
                       double amount);

/* Subtracts `scale` times the losses from log_weights. */
void expert_losses_apply(const DecayedSum *losses, unsigned n, uint64_t now_weight, double scale,
                         double *log_weights);

/* Adds a promise of the probability p, which came true or did not, to the counts of a snapshot. */
void expert_promises_count(double counts[static PROMISE_BINS][PROMISE_SUMS], double p, bool came);

/* Adds the promises of one snapshot. The promises of a bin depend on one another, so they count as
 * one: its probability is their mean, its outcome the share of them that came true. */
void expert_promises_add(DecayedSum promises[static PROMISE_BINS][PROMISE_SUMS],
                         uint64_t now_weight, const double counts[PROMISE_BINS][PROMISE_SUMS]);

/* Returns true if no bin counts more promises that came true than promises. */
bool expert_promises_valid(const ExpertWeights *w);

/* Corrects the probability p by the outcomes of earlier promises of its size (histogram binning:
 * Zadrozny and Elkan 2001). A bin's correction is an addend to the log odds. It is interpolated
 * between neighbouring bins, so that probabilities keep their order. Each bin starts with `start`
 * snapshots whose promises count as correct. */
double expert_promises_correct(const DecayedSum promises[static PROMISE_BINS][PROMISE_SUMS],
                               uint64_t now_weight, double start, double p);

/* Lists all sums, in the order of the JSON format. */
void expert_weights_sums(ExpertWeights *w, DecayedSum **ret);
