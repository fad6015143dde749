/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* People to judge predictors by: a habit model drawn from a seed, sessions drawn from it, and the
 * oracle, a predictor that knows its true probabilities. Nobody can do better in the long run than
 * the oracle; how near a predictor comes is a figure that does not depend on how hard the habits
 * are.
 *
 * A user has applications of his own and some that all users share, with a popularity that falls
 * off (Zipf) and his own habits on top: what he starts next depends on what he started last or on
 * something that runs, by a row of weights drawn for each. From time to time (exponential) he turns
 * to an application by these weights: if it does not run, it starts. Applications run for a time
 * (exponential), some until the session ends. Each session begins with the processes of his
 * desktop. Applications are made of own objects and of libraries they share with the others of
 * their toolkit; or of what real ones were recorded to use, if those are given: then only the
 * habits are drawn.
 *
 * Habits are loose: seeds are drawn until the best single guess of the next application, by the
 * true probabilities, is right between HABITS_GUESS_MIN and HABITS_GUESS_MAX of the time. */

#include "base/uid.h"
#include "evaluate/simulate.h"

#define HABITS_GUESS_MIN 0.30
#define HABITS_GUESS_MAX 0.60

typedef struct HabitsParameters {
    unsigned n_users;       /* 1..16: 2 */
    unsigned n_own;         /* applications of each user alone: 9 */
    unsigned n_shared;      /* that everybody uses: 3 */
    unsigned n_desktop;     /* processes that each user's session begins with: 2 */
    double last_share;      /* choices that depend on the application started last: 0.7 */
    double popularity;      /* exponent of Zipf's law: 0.3 */
    double regularity;      /* 0: all rows alike; larger: more pronounced habits: 2 */
    usec_t think;           /* mean time between two turns: 60 s */
    usec_t session_minimum; /* 20 min */
    usec_t session_mean;    /* on top of the minimum: 40 min */

    /* What real applications are made of, or NULL, and those of its items that are applications
     * (habits_find_real()). Borrowed until habits_new() returns. As many as are needed
     * (n_users * (n_own + n_desktop) + n_shared) are drawn of them. */
    const SimulateInput *real;
    const uint32_t *real_items;
    size_t n_real_items;
} HabitsParameters;

void habits_parameters_init(HabitsParameters *p);

typedef struct Habits Habits;

/* A person's start comes by itself, and what he started stays; helpers and plug-ins come in the
 * wake of what brings them, and many exit at once. */
#define HABITS_ALONE (250 * USEC_PER_MSEC) /* since anything else has started */
#define HABITS_STAYS (1 * USEC_PER_SEC)

/* The items of that size that people have started themselves, most of the times that they were
 * started: indexes into the input's items, the caller's to free. 0 or -ENOMEM. */
int habits_find_real(const SimulateInput *in, uint64_t minimum_bytes, uint32_t **ret,
                     size_t *ret_n);

/* Draws habits. 0, -EINVAL (parameters; too few real applications), -ERANGE (no habits within the
 * bounds were found in 1000 draws), -ENOMEM. */
int habits_new(const HabitsParameters *parameters, uint64_t seed, Habits **ret);
Habits *habits_free(Habits *h);
DEFINE_CLEANUP(Habits *, habits_free);
#define _cleanup_habits_ _cleanup_(habits_freep)

/* How often the best single guess of the next application is right, by the true probabilities. */
double habits_best_guess(const Habits *h);

/* Bytes of all objects that any user's applications use. */
uint64_t habits_union_bytes(const Habits *h);

/* Draws that many sessions into an empty input, of one user, or (UID_INVALID) of users in random
 * order, each as likely. 0, -EINVAL (no such user), -ENOMEM, -E2BIG. */
int habits_sessions(const Habits *h, uint32_t user, size_t n_sessions, uint64_t seed,
                    SimulateInput *ret);

/* The predictor that knows. For a horizon of seconds by the true rates, until the session's end by
 * drawing `n_futures` futures from the present state. Borrows `h`. 0 or -ENOMEM. */
int habits_oracle_new(const Habits *h, unsigned n_futures, uint64_t seed, Predictor **ret);
