/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The predictor of the product: starts and exits of applications go in, the probabilities that
 * applications start within several horizons come out. It learns while it observes. Pure.
 *
 * Its knowledge is the preload thesis's four-state chains (chains.h). The thesis combines them by
 * P(needed) = 1 - product over all chains of (1 - P(needed | chain)). Every chain of an application
 * predicts the same start, so the product counts that start once for each chain: 100 chains of 5 %
 * give 99.4 %. The mixture treats starts as competing risks instead. An application that does not
 * run starts at a rate (its hazard). Six experts estimate the rates, three from the history of the
 * user and three from that of everybody (expert.h). Further experts count starts in the log of
 * sessions (sequence.h). Each expert yields a distribution of the next start; the mixture's is
 * their weighted sum. For a horizon, other experts yield probabilities (horizon.h), which the
 * mixture weights and adds in the same way. It learns all weights (expert-weights.h). The formulas
 * are derived in mixture-next.c and mixture-horizon.c.
 *
 * To learn the weights, the mixture must compute the chances of every application. It learns from
 * every one of the first 2 * MIXTURE_LEARN_ALL events, and then from a part of the events that
 * grows with the logarithm of their number. */

#include "chains/chains.h"
#include "predict/guesses.h"

#define MIXTURE_LEARN_ALL 512U

/* The default window of the chains (Chains.window_usec). */
#define MIXTURE_CHAIN_WINDOW (600 * USEC_PER_SEC)

typedef struct Mixture Mixture;

/* Makes a mixture that predicts from `chains` and adds its observations to them. Ends the session
 * of the chains. Takes ownership of the chains on success. The items of guesses are ids of the
 * chains. Returns 0 or -ENOMEM. After -ENOMEM the session may have ended nevertheless. */
int mixture_new(Chains *chains, Mixture **ret);
Mixture *mixture_free(Mixture *m);
DEFINE_CLEANUP(Mixture *, mixture_free);
#define _cleanup_mixture_ _cleanup_(mixture_freep)

/* Returns the chains, to show or to copy them. They still belong to the mixture. */
Chains *mixture_chains(const Mixture *m);

/* Frees the mixture and returns its chains. */
Chains *mixture_release_chains(Mixture *m);

/* Sets by how many seconds the local time is ahead of UTC: within a day, 0 at first. Habits of the
 * hour, of the weekend and of alternate days follow the local time. */
void mixture_set_utc_offset(Mixture *m, int64_t seconds);

/* Ends the previous session and begins one of `user` (UID_INVALID: unknown), in which nothing runs
 * yet. If `learn` is true, the mixture learns from the session. If it is false, the mixture only
 * follows which applications run. Returns 0 or -ENOMEM. */
int mixture_begin(Mixture *m, EventTime t, uint32_t user, bool learn);

/* Ends the session. The running time of applications that still run ends here, but they do not
 * count as exited. Returns 0, or -ENOMEM as chains_end(). */
int mixture_end(Mixture *m, EventTime t);

/* Counts the start or the exit of a process of an application. An application runs while one of its
 * processes does. Outside of a session, a start begins a session of an unknown user. Returns 1 if
 * the application now runs and did not before, or the reverse; 0 if nothing changed (a second
 * start, an exit without a start), -E2BIG (id), -ENOMEM. */
int mixture_start(Mixture *m, EventTime t, uint32_t id);
int mixture_exit(Mixture *m, EventTime t, uint32_t id);

/* Replaces ret[i] by the sorted guesses for horizons[i] (USEC_INFINITY: until the session ends):
 * for each application that does not run, the probability that it starts within the horizon. The
 * rates are computed once for all horizons. Returns 0 or -ENOMEM. */
int mixture_predict(Mixture *m, EventTime t, const usec_t *horizons, size_t n, Guesses *ret);

/* Computes the order in which to read. Replaces *ret by sorted scores within 0..1. The score of an
 * application is a weighted mean of two probabilities: four fifths of the probability that it
 * starts next, and one fifth of the probability that it starts within the horizon. The scores are
 * not probabilities. Returns 0 or -ENOMEM. */
int mixture_rank(Mixture *m, EventTime t, usec_t horizon, Guesses *ret);
