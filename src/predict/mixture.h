/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* headstart's own predictor: the thesis's mixture of four-state chains (predict/chains.h), its
 * evidence combined so that the probabilities are true ones.
 *
 * The thesis multiplies: P(needed) = 1 - product over all chains of (1 - P(needed | chain)). Every
 * chain of an application sees the same start coming, so the product counts it as often as there
 * are chains: 100 chains of 5 % give 99.4 %. MIXTURE_PRODUCT does that, for comparison.
 *
 * MIXTURE_CALIBRATED takes starts as competing risks. An application that does not run starts at a
 * rate (hazard); six experts estimate it, three from the history of the user and three from that of
 * everybody:
 *   own   its own two-state chain: starts over the time it did not run;
 *   last  the succession: starts as the next after what was started last, over the time they could;
 *   run   the four-state chains with each application that runs: N[s][j] / dwell[s] in the state
 *         that a runs and b does not, averaged over those that run.
 * The last two are shrunk towards the first by a prior worth MIXTURE_PRIOR starts, and use only
 * pairs that are chains. The rate of an application is the weighted sum of its experts: independent
 * risks add. The weights are learned by expectation maximisation for a Poisson process, online:
 * when an application starts, each expert is credited with its share of the rate it had predicted
 * before
 * ("attributed"); while time passes it is charged with the starts it expects ("expected"); its
 * weight is credit over charge. That makes the whole calibrated (expected starts equal those that
 * came) and the better expert heavier, and both are fading sums, so that learned weights merge like
 * everything else. They are kept apart by how much is known of what was started last, so that a
 * fresh context trusts the general habit and a well-known one itself: backing off, with the order
 * of backing off learned.
 *
 * P(starts within tau) = 1 - exp(-rate * tau). Before the session ends: the present rate holds
 * until something else starts, then the application's own rate; the session ends at its own rate.
 *
 * Learning of weights costs a look at every application, so it is done for the first
 * MIXTURE_LEARN_ALL events and then ever more rarely: a sample whose size grows with the logarithm.
 */

#include "predict/chains.h"
#include "predict/predictor.h"

#define MIXTURE_PRIOR     2.0
#define MIXTURE_LEARN_ALL 1024U

/* A chain needs two starts within this of each other. */
#define MIXTURE_CHAIN_WINDOW (600 * USEC_PER_SEC)

/* A new mixture with chains of that half-life that know nothing, and the other parameters at their
 * defaults. 0, -EINVAL (half-life out of range), -ENOMEM. */
int mixture_new(usec_t halflife_usec, Predictor **ret);

/* The chains of a mixture, to save them, or show them. Borrowed. */
Chains *mixture_chains(Predictor *p);

/* Gives a new mixture what was learned before: takes the chains over on success. The names of the
 * chains are the items' numbers: chains->names[item]. 0 or -EINVAL if something was observed
 * already. */
int mixture_set_chains(Predictor *p, Chains *chains);

/* Takes them back from a mixture between sessions (-EINVAL within one); it is good for nothing but
 * predictor_free() then. */
int mixture_take_chains(Predictor *p, Chains **ret);
