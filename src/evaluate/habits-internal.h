/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What habits.c (users, their sessions, the oracle) and habits-tables.c (the objects of
 * applications) share. */

#include "evaluate/habits.h"
#include "evaluate/random.h"

#define USERS_MAX        16
#define APPLICATIONS_MAX 64 /* of one user */

/* One application as one user uses it. */
typedef struct HabitsApplication {
    uint32_t item;
    double run_mean_usec;             /* 0: until the session ends */
    double weights[APPLICATIONS_MAX]; /* of what follows it, sum 1 */
} HabitsApplication;

typedef struct HabitsUser {
    HabitsApplication applications[APPLICATIONS_MAX]; /* desktop processes not among them */
    unsigned n;
    double first[APPLICATIONS_MAX]; /* weights before anything was started, sum 1 */
    uint32_t desktop[8];
} HabitsUser;

struct Habits {
    HabitsParameters p;
    HabitsUser *users;
    uint32_t n_items;
    SimulateInput objects; /* the tables of objects and items, no events */
    double best_guess;
};

/* Scales n weights to a sum of 1. */
void habits_normalise(double *w, unsigned n);

/* Draws the objects of applications, or takes those of real ones. 0, -EINVAL (too few real ones),
 * -ENOMEM, -E2BIG. */
int habits_draw_tables(Habits *h, Random *random);
