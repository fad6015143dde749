/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The predictor of the product: starts and exits of applications go in, the probabilities that
 * applications start within several horizons come out. It learns while it observes. Pure.
 *
 * Its knowledge is the preload thesis's four-state chains (chains.h). The thesis combines them by
 * P(needed) = 1 - product over all chains of (1 - P(needed | chain)). Every chain of an application
 * predicts the same start, so the product counts that start once for each chain: 100 chains of 5 %
 * give 99.4 %. The mixture takes starts as competing risks instead. An application that does not
 * run starts at a rate (its hazard). Six experts estimate the rate, three from the history of the
 * user and three from that of everybody (expert.h); the mixture's rate is their weighted sum. The
 * weights are learned (expert-weights.h). mixture-next.c and mixture-horizon.c derive the formulas.
 *
 * To learn the weights, the mixture must compute rates for every application. It learns them from
 * the first MIXTURE_LEARN_ALL events and then from a sample of the events, whose size grows with
 * the logarithm of their number. */

#include "predict/chains.h"
#include "predict/guesses.h"

#define MIXTURE_LEARN_ALL 512U

/* The default window of the chains (Chains.window_usec). */
#define MIXTURE_CHAIN_WINDOW (600 * USEC_PER_SEC)

typedef struct Mixture Mixture;

/* Makes a mixture that predicts from `chains` and adds its observations to them. Takes ownership of
 * the chains on success, and ends their session. The items of guesses are ids of the chains. 0 or
 * -ENOMEM. */
int mixture_new(Chains *chains, Mixture **ret);
Mixture *mixture_free(Mixture *m);
DEFINE_CLEANUP(Mixture *, mixture_free);
#define _cleanup_mixture_ _cleanup_(mixture_freep)

/* Returns the chains, to show or to copy them. Borrowed. */
Chains *mixture_chains(const Mixture *m);

/* Frees the mixture and returns its chains. */
Chains *mixture_release_chains(Mixture *m);

/* A session of that user (UID_INVALID: unknown) begins: nothing runs. `learn`: learn from it;
 * otherwise the mixture only follows which applications run. Ends the previous session. 0 or
 * -ENOMEM. */
int mixture_begin(Mixture *m, EventTime t, uint32_t user, bool learn);

/* The session ends. The time of applications that still run ends here, but they do not count as
 * exited. */
void mixture_end(Mixture *m, EventTime t);

/* A process of an application starts or exits; an application runs as long as one of its processes
 * does. Outside of a session, a start begins a session of an unknown user. 1 if the call changed
 * whether the application runs, 0 if not (the second start, an exit without a start), -E2BIG (id),
 * -ENOMEM. */
int mixture_start(Mixture *m, EventTime t, uint32_t id);
int mixture_exit(Mixture *m, EventTime t, uint32_t id);

/* Computes for each of the horizons (USEC_INFINITY: until the session ends) the probability that an
 * application that does not run starts within it. Replaces ret[i] by the sorted guesses for
 * horizons[i]. The rates are computed once for all horizons. 0 or -ENOMEM. */
int mixture_predict(Mixture *m, EventTime t, const usec_t *horizons, size_t n, Guesses *ret);

/* Computes the order in which to read: an application that starts next counts twice as much as one
 * that starts later within the horizon. *ret is replaced by sorted scores within 0..1: the mean of
 * the probability of being the next start and of the probability of starting within the horizon.
 * The scores are not probabilities. 0 or -ENOMEM. */
int mixture_rank(Mixture *m, EventTime t, usec_t horizon, Guesses *ret);
