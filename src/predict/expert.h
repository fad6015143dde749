/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The experts of the mixture (mixture.h). Each expert estimates from one history, for each
 * application that does not run, the rate at which the application starts now. Pure. */

#include "chains/chains.h"

/* The prior of a rate counts as this many starts. */
#define EXPERT_PRIOR 2.0

/* The present state. Applications have the numbers that one history gives them. */
typedef struct Situation {
    const Chains *chains;
    const UserHistory *history;
    uint32_t last;    /* started last; CHAINS_BEGIN: none has, or the history does not know it */
    double last_usec; /* time since that start which `history` has not counted yet */
    const uint32_t *running;
    size_t n_running;
    const bool *runs;  /* by application */
    double prior_usec; /* time in which EXPERT_PRIOR starts of all applications together are
                          expected */
} Situation;

typedef struct Expert {
    const char *name;
    /* Writes rates[i], in starts per microsecond, for every application i that does not run, from 1
     * on. `own`: the rates of the expert "own", towards which the other experts shrink their
     * rates. */
    void (*rate)(const Situation *s, const double *own, double *rates);
} Expert;

/* own   the application's own two-state chain: starts over the time in which it did not run;
 * last  the succession: starts that came next after a start of the application that started last,
 *       over the time in which they could have come;
 * run   the four-state chains with each application that runs: N[s][j] / dwell[s] of the state in
 *       which the other one runs and this one does not, averaged over those that run.
 * The rates of "last" and "run" come from pairs with a chain, and are shrunk towards "own". */
extern const Expert expert_own, expert_last, expert_run;

/* Returns Situation.prior_usec of a history. */
double expert_prior_usec(const Chains *c, const UserHistory *h);

/* Returns how many starts are known to have followed the application that started last. */
double expert_known_successors(const Situation *s);
