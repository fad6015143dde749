/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The thesis's predictor, `preload` (chapters 3 and 4), for comparison. It has a four-state
 * continuous-time Markov chain for every pair of applications, with state = (a runs) + 2 * (b
 * runs). Means decay exponentially by equation 3.10. The product of equations 4.10 to 4.12 over all
 * chains of an application is computed as a sum of logarithms (5.8.1).
 *
 * There are two corrections (docs/predictors.md). Algorithm 4.4 decays every row of the transition
 * probabilities on every transition, by the time since the state was entered. Equation 3.10 decays
 * only the row of the state that was left, by the time since that state was left before. The first
 * visit of a state has no earlier mean, so its value is used unchanged. Therefore each visited row
 * is a distribution.
 *
 * Memory grows with the square of the number of applications. Applications beyond
 * PRELOAD_APPLICATIONS_MAX are not learned. */

#include "evaluate/predictor.h"

#define PRELOAD_APPLICATIONS_MAX 1024U

typedef struct PreloadChain {
    float transition_usec[4]; /* mean time until the state is left: tt */
    float probability[4][4];  /* of going to j when state i is left: tp */
    usec_t left[4];           /* when the state was last left; USEC_INFINITY: never */
    usec_t entered;           /* when the present state was entered */
    unsigned state;           /* runtime */
} PreloadChain;

/* The chain of two items. *ret_swapped: b, not a, is the lower bit of its state. NULL if there is
 * none. */
const PreloadChain *preload_chain(const Predictor *p, uint32_t a, uint32_t b, bool *ret_swapped);
