/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the parts of the mixture share: the experts' rates (mixture-rates.c), learning and
 * predicting (mixture.c). */

#include "predict/mixture.h"
#include "predict/predictor-internal.h"

enum {
    EXPERT_OWN,
    EXPERT_LAST,
    EXPERT_RUN,
    EXPERTS_OF_HISTORY,
};
#define EXPERTS (2 * EXPERTS_OF_HISTORY) /* the user's, then everybody's */

_Static_assert(EXPERTS == CHAINS_EXPERTS, "the model keeps a weight for each expert");

typedef struct Mixture {
    Predictor base;
    MixtureCombination combination;
    bool users;
    Chains *chains;
    UserHistory *user; /* of the session, or NULL */
    /* The rates of every application of everybody's history, per microsecond, by expert */
    double (*rates)[EXPERTS];
    size_t allocated_rates, n_rates;
    bool *running; /* of one history, while its rates are computed */
    size_t allocated_running;
    unsigned bucket;
    bool learning; /* rates are those since `rated_at` */
    usec_t rated_at;
    uint64_t n_events;
} Mixture;

/* (starts + what the rate expects in the prior time) over all of the time. */
static inline double mixture_shrink(double starts, double usec, double rate, double prior_usec)
{
    return (starts + rate * prior_usec) / (usec + prior_usec);
}

/* The rates of all experts for what is (state NULL) or is given. `user` may be NULL: then
 * everybody's experts stand in for the user's. 0 or -ENOMEM. */
int mixture_compute_rates(Mixture *m, const UserHistory *user, const PredictorState *state);
