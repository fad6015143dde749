/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by habits.c (users, their sessions, the oracle) and habits-tables.c (the objects of
 * applications). */

#include "evaluate/habits.h"
#include "evaluate/random.h"

#define USERS_MAX        16
#define APPLICATIONS_MAX 64 /* of one user */

/* The habits of one user with one application. */
typedef struct HabitsApplication {
    uint32_t item;
    double run_mean_usec; /* mean time of a run; 0: a run lasts until the session ends */
    double weights[APPLICATIONS_MAX]; /* weights of the applications that follow it, sum 1 */
} HabitsApplication;

typedef struct HabitsUser {
    HabitsApplication applications[APPLICATIONS_MAX]; /* without desktop processes */
    unsigned n;
    double first[APPLICATIONS_MAX]; /* weights of the first application of a session, sum 1 */
    uint32_t desktop[8];
} HabitsUser;

struct Habits {
    HabitsParameters p;
    HabitsUser *users;
    uint32_t n_items;
    SimulateInput objects; /* the tables of objects and items, without events */
    double best_guess;
};

/* Scales n weights to a sum of 1. */
void habits_normalise(double *w, unsigned n);

/* Draws the objects of applications, or uses those of real ones. Returns 0, -EINVAL (too few real
 * ones), -ENOMEM, -E2BIG. */
int habits_draw_tables(Habits *h, Random *random);
