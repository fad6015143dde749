/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the mixture share. mixture.c calls the others, mixture-snapshots.c calls
 * mixture-horizon.c, and mixture-next.c and mixture-horizon.c call neither. */

#include "predict/horizon.h"
#include "predict/mixture.h"

/* Predictions of each horizon that wait for their outcome at a time. */
#define SNAPSHOTS         8U
#define SNAPSHOTS_OF_TIME 4U /* of one that ends before the session */

/* What the experts predicted for a horizon, until the outcome is known. */
typedef struct Snapshot {
    bool pending;
    usec_t until;                       /* USEC_INFINITY: the end of the session */
    unsigned horizon;                   /* class */
    double (*chances)[HORIZON_EXPERTS]; /* by row; [0] < 0: it ran */
    double *promised;                   /* by row, not corrected */
    bool *came;
    size_t n, allocated_chances, allocated_promised, allocated_came;
} Snapshot;

struct Mixture {
    Chains *chains;
    UserHistory *user; /* of the session; NULL: unknown, or never seen */
    /* By row, which is an application of everybody's history, and by expert. */
    double (*rates)[EXPERTS_OF_CHAINS]; /* per microsecond */
    double (*chances)[EXPERTS];         /* that it is the next to start */
    double *next;                       /* the mixture of the chances */
    double (*within)[HORIZON_EXPERTS];  /* chances within the latest horizon */
    size_t allocated_rates, allocated_chances, allocated_next, allocated_within, n_rows;
    double weights[EXPERTS]; /* that go with the chances */
    double boosts[EXPERTS];
    unsigned bucket;
    /* For one history, while it is asked: rates by expert and application, what runs. */
    double *scratch;
    size_t allocated_scratch;
    bool *runs;
    size_t allocated_runs;
    uint32_t *running;
    size_t allocated_running;
    /* The history whose log is counted, and the present in its numbers. */
    const UserHistory *logged;
    SequenceSituation situation;
    LoggedStart *present;
    size_t allocated_present;
    bool *logged_runs;
    size_t allocated_logged_runs;
    double *columns; /* of horizons, by expert and application of `logged` */
    size_t allocated_columns;
    Sequence sequence;
    Horizons horizons;
    Snapshot snapshots[HORIZON_CLASSES][SNAPSHOTS];
    usec_t latest[HORIZON_CLASSES]; /* when the latest snapshot was taken */
    bool learning; /* the chances are the present ones: nothing has changed since */
    uint64_t n_events;
};

/* Nothing is known about a user who has never been seen. */
static inline bool mixture_is_stranger(const Mixture *m)
{
    return !m->user || decayed_sum_is_zero(m->user->sessions);
}

/* The history that predicts for the user: a stranger is expected to do what everybody does. */
static inline const UserHistory *mixture_history(const Mixture *m)
{
    return mixture_is_stranger(m) ? m->chains->histories[0] : m->user;
}

/* The row of an application of the history whose log is counted, or CHAINS_NONE. */
static inline uint32_t mixture_row(const Mixture *m, size_t application)
{
    return user_history_find(m->chains->histories[0], m->logged->applications[application].id);
}

/* --- mixture-next.c --------------------------------------------------------------------------- */

/* Computes the chances of all experts for the present, and the distribution of the next start. 0 or
 * -ENOMEM. */
int mixture_next_compute(Mixture *m);

/* An application has started: credits the experts, and updates the boosts. */
void mixture_next_learn(Mixture *m, uint32_t started);

/* --- mixture-horizon.c: after mixture_next_compute() ------------------------------------------ */

/* Fills m->within: what each expert predicts for the horizon. 0 or -ENOMEM. */
int mixture_horizon_compute(Mixture *m, usec_t horizon);

/* The weights of the experts' mixture alone, for a class of horizons. */
void mixture_class_mixture(const Mixture *m, unsigned horizon, double *ret);

/* The final weights of a class: those of the mixture and of each expert alone, by their losses. */
void mixture_class_weights(const Mixture *m, unsigned horizon, double *ret);

/* The final weights for a horizon: between those of the two nearest classes. */
void mixture_horizon_weights(const Mixture *m, usec_t horizon, double *ret);

/* The probability that an application starts within the horizon of m->within, not corrected. */
double mixture_horizon_chance(const Mixture *m, size_t row, const double *weights);

/* The probability, corrected by how often earlier predictions of about that probability came true.
 */
double mixture_horizon_correct(const Mixture *m, usec_t horizon, double p);

/* --- mixture-snapshots.c ---------------------------------------------------------------------- */

/* Takes the snapshots that are due: of a horizon of time in its every quarter, and for the rest of
 * the session at the start 0, 1, 2, 4, 8, … 0 or -ENOMEM. */
int mixture_snapshots_take(Mixture *m);

/* Learns from the snapshots whose horizon is over, or at the end of a session from all. */
void mixture_snapshots_learn(Mixture *m, bool all);

/* An application has started: the pending snapshots hold that outcome. */
void mixture_snapshots_note_start(Mixture *m, uint32_t id);

void mixture_snapshots_done(Mixture *m);
