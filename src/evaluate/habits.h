/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Simulated users for the comparison of predictors: a model of habits drawn from a seed, sessions
 * drawn from the model, and the oracle, a predictor that knows the model's true probabilities. No
 * predictor is better than the oracle in the long run. A predictor's distance to the oracle does
 * not depend on how hard the habits are to predict.
 *
 * A user has applications of their own and some that all users share. The popularity of all these
 * applications follows Zipf's law. The next start depends on the application that started last, or
 * on a running application, by a row of weights that is drawn for each application. After times
 * that are exponentially distributed the user turns to an application by these weights. The
 * application starts if it does not run. Applications run for an exponential time, some until the
 * session ends. Each session begins with the processes of the user's desktop. Applications consist
 * of objects of their own and of libraries that they share with others of their toolkit. If
 * recorded objects of real applications are given, those are used, and only the habits are drawn.
 *
 * Habits are drawn again until the best single guess, which is the likeliest next application by
 * the true probabilities, is right in HABITS_GUESS_MIN to HABITS_GUESS_MAX of the cases. */

#include "base/uid.h"
#include "evaluate/simulate.h"

#define HABITS_GUESS_MIN 0.30
#define HABITS_GUESS_MAX 0.60

typedef struct HabitsParameters {
    unsigned n_users;   /* 1 to 16; default 2 */
    unsigned n_own;     /* applications of each user alone; default 9 */
    unsigned n_shared;  /* applications of all users; default 3 */
    unsigned n_desktop; /* processes that each user's session begins with; default 2 */
    double last_share;  /* share of choices that depend on the application started last; default 0.7
                         */
    double popularity;  /* exponent of Zipf's law; default 0.3 */
    double regularity;  /* 0: all rows alike; larger: more pronounced habits; default 2 */
    usec_t think;       /* mean time between two turns; default 60 s */
    usec_t session_minimum; /* default 20 min */
    usec_t session_mean;    /* on top of the minimum; default 40 min */

    /* The objects of real applications (or NULL), and the items that are applications
     * (habits_find_real()). Borrowed until habits_new() returns. As many as needed (n_users *
     * (n_own + n_desktop) + n_shared) are drawn from them. */
    const SimulateInput *real;
    const uint32_t *real_items;
    size_t n_real_items;
} HabitsParameters;

void habits_parameters_init(HabitsParameters *p);

typedef struct Habits Habits;

/* A start counts as a person's if no other start precedes it closely, and if the application stays.
 * Helpers and plug-ins start right after the application that uses them, and many exit at once. */
#define HABITS_ALONE (250 * USEC_PER_MSEC) /* since the last start of anything */
#define HABITS_STAYS (1 * USEC_PER_SEC)

/* Finds the items of at least `minimum_bytes` that were mostly started by a person. Returns indexes
 * into the input's items. The caller frees *ret. Returns 0 or -ENOMEM. */
int habits_find_real(const SimulateInput *in, uint64_t minimum_bytes, uint32_t **ret,
                     size_t *ret_n);

/* Draws habits. Returns 0, -EINVAL (parameters; too few real applications), -ERANGE (no habits
 * within the bounds were found in 1000 draws), -ENOMEM. */
int habits_new(const HabitsParameters *parameters, uint64_t seed, Habits **ret);
Habits *habits_free(Habits *h);
DEFINE_CLEANUP(Habits *, habits_free);
#define _cleanup_habits_ _cleanup_(habits_freep)

/* Returns how often the best single guess of the next application is right, by the true
 * probabilities. */
double habits_best_guess(const Habits *h);

/* Returns the bytes of all objects that the applications of all users use. */
uint64_t habits_union_bytes(const Habits *h);

/* Draws sessions into an empty input: of one user, or (UID_INVALID) each of a random user. Returns
 * 0, -EINVAL (no such user), -ENOMEM, -E2BIG. */
int habits_sessions(const Habits *h, uint32_t user, size_t n_sessions, uint64_t seed,
                    SimulateInput *ret);

/* Makes the oracle. If a prediction has a finite horizon, the oracle uses the true rates. If the
 * horizon is the rest of the session (USEC_INFINITY), it draws `n_futures` futures from the present
 * state. Borrows `h`. Returns 0 or -ENOMEM. */
int habits_oracle_new(const Habits *h, unsigned n_futures, uint64_t seed, Predictor **ret);
