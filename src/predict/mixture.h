/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The predictor of the product: starts and exits of applications go in, the probabilities that
 * applications start within several horizons come out. It learns while it observes. Pure.
 *
 * Its knowledge is the preload thesis's four-state chains (chains.h). The thesis combines them by
 * P(needed) = 1 - product over all chains of (1 - P(needed | chain)). Every chain of an application
 * sees the same start coming, so the product counts that start once for each chain: 100 chains of
 * 5 % give 99.4 %. The mixture takes starts as competing risks instead. An application that does
 * not run starts at a rate (its hazard). Six experts estimate the rate, three from the history of
 * the user and three from that of everybody (expert.h); the mixture's rate is their weighted sum.
 * The weights are learned (expert-weights.h). mixture.c derives the formulas.
 *
 * Learning the weights costs a look at every application. It is done for the first
 * MIXTURE_LEARN_ALL events and then for a sample of them, whose size grows with the logarithm of
 * the number of events. */

#include "predict/chains.h"
#include "predict/guesses.h"

#define MIXTURE_LEARN_ALL 512U

/* The window of the chains (Chains.window_usec) where nothing else is said. */
#define MIXTURE_CHAIN_WINDOW (600 * USEC_PER_SEC)

typedef struct Mixture Mixture;

/* A mixture that predicts from `chains` and adds to them what it observes. Takes the chains over on
 * success; their session ends. The items of guesses are ids of the chains. 0 or -ENOMEM. */
int mixture_new(Chains *chains, Mixture **ret);
Mixture *mixture_free(Mixture *m);
DEFINE_CLEANUP(Mixture *, mixture_free);
#define _cleanup_mixture_ _cleanup_(mixture_freep)

/* The chains, to show or to copy them. Borrowed. */
Chains *mixture_chains(const Mixture *m);

/* Frees the mixture and returns its chains. */
Chains *mixture_release_chains(Mixture *m);

/* A session of that user (UID_INVALID: unknown) begins: nothing runs. `learn`: learn from it; else
 * the mixture only follows what runs. Ends the session before. 0 or -ENOMEM. */
int mixture_begin(Mixture *m, EventTime t, uint32_t user, bool learn);

/* The session ends. The time of applications that still run ends here, but they do not count as
 * exited. */
void mixture_end(Mixture *m, EventTime t);

/* A process of an application starts or exits; an application runs as long as one of its processes
 * does. Outside of a session, a start begins one of an unknown user. 1 if that changed whether the
 * application runs, 0 if not (the second start, an exit without a start), -E2BIG (id), -ENOMEM. */
int mixture_start(Mixture *m, EventTime t, uint32_t id);
int mixture_exit(Mixture *m, EventTime t, uint32_t id);

/* For each of the horizons (USEC_INFINITY: until the session ends), the probability that an
 * application that does not run starts within it: ret[i] is replaced by the sorted guesses for
 * horizons[i]. The rates are computed once for all horizons. 0 or -ENOMEM. */
int mixture_predict(Mixture *m, EventTime t, const usec_t *horizons, size_t n, Guesses *ret);

/* The order in which to read: what starts next counts twice as much as what starts later within the
 * horizon. *ret is replaced by sorted scores within 0..1: the mean of the probability of being the
 * next start and of the probability of starting within the horizon. They are no probabilities. 0 or
 * -ENOMEM. */
int mixture_rank(Mixture *m, EventTime t, usec_t horizon, Guesses *ret);
