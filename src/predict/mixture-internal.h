/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The state that the files of the mixture share, and the functions by which they call one another.
 * mixture.c calls the three other files, and mixture-snapshots.c calls mixture-horizon.c. */

#include "predict/horizon.h"
#include "predict/mixture.h"

/* The most snapshots that may be pending at a time, for each class of horizons. */
#define SNAPSHOTS         8U
#define SNAPSHOTS_OF_TIME 4U /* for each class but HORIZON_SESSION */

/* The predictions of the experts for a horizon. A snapshot is pending until the outcome is known.
 */
typedef struct Snapshot {
    bool pending;
    usec_t until;                       /* USEC_INFINITY: the end of the session */
    unsigned horizon;                   /* the class */
    double (*chances)[HORIZON_EXPERTS]; /* by row; a negative [0] means that the application ran
                                           when the snapshot was taken */
    double *promised;                   /* by row: the probability before its correction */
    bool *came;                         /* by row: the application started */
    size_t n, allocated_chances, allocated_promised, allocated_came;
} Snapshot;

struct Mixture {
    Chains *chains;
    UserHistory *user; /* of the session; NULL: the user is unknown, or was never seen */
    int64_t utc_offset_sec;
    /* By row and by expert. A row is the number of an application in everybody's history. */
    double (*rates)[EXPERTS_OF_CHAINS]; /* per microsecond */
    double (*chances)[EXPERTS];         /* that the application starts next */
    double *next;                       /* the mixture of the chances */
    double (*within)[HORIZON_EXPERTS];  /* chances within the horizon that was computed last */
    size_t allocated_rates, allocated_chances, allocated_next, allocated_within, n_rows;
    double weights[EXPERTS]; /* of the experts of `chances` */
    double boosts[EXPERTS];
    unsigned bucket;
    /* The following fields serve while the experts of one history are computed. They are indexed by
     * the application numbers of that history. */
    double *scratch; /* rates, by expert and application */
    size_t allocated_scratch;
    bool *runs; /* by application */
    size_t allocated_runs;
    uint32_t *running; /* the applications that run */
    size_t allocated_running;
    /* The history whose log of sessions is counted, and the present session with the application
     * numbers of that history. */
    const UserHistory *logged;
    uint32_t *rows; /* by application of `logged`; CHAINS_NONE: there is no row */
    size_t allocated_rows;
    SequenceSituation situation;
    LoggedStart *present;
    size_t allocated_present;
    bool *logged_runs;
    size_t allocated_logged_runs;
    double *columns; /* chances within a horizon, by expert and application of `logged` */
    size_t allocated_columns;
    Sequence sequence;
    Horizons horizons;
    Snapshot snapshots[HORIZON_CLASSES][SNAPSHOTS];
    usec_t latest[HORIZON_CLASSES]; /* when the latest snapshot was taken */
    bool learning;                  /* the chances were computed after the latest event */
    uint64_t n_events;
};

/* Returns true for an unknown user and for a user without history. */
static inline bool mixture_is_stranger(const Mixture *m)
{
    return !m->user || decayed_sum_is_zero(m->user->sessions);
}

/* Returns the history from which the user is predicted. For a stranger this is the history of
 * everybody. */
static inline const UserHistory *mixture_history(const Mixture *m)
{
    return mixture_is_stranger(m) ? m->chains->histories[0] : m->user;
}

/* --- mixture-next.c --------------------------------------------------------------------------- */

/* Computes the chances of all experts for the present, and the distribution of the next start.
 * Returns 0 or -ENOMEM. */
int mixture_next_compute(Mixture *m);

/* Credits the experts with the start of an application, and updates the boosts. */
void mixture_next_learn(Mixture *m, uint32_t started);

/* --- mixture-horizon.c: after mixture_next_compute() ------------------------------------------ */

/* Fills m->within: what each expert predicts for the horizon. Returns 0 or -ENOMEM. */
int mixture_horizon_compute(Mixture *m, usec_t horizon);

/* Computes the weights of the experts from their credits, for a class of horizons. */
void mixture_class_mixture(const Mixture *m, unsigned horizon, double *ret);

/* Computes the final weights of a class. The losses decide how much the mixture counts, and how
 * much each expert alone. */
void mixture_class_weights(const Mixture *m, unsigned horizon, double *ret);

/* Computes the final weights for a horizon, interpolated between its two nearest classes. */
void mixture_horizon_weights(const Mixture *m, usec_t horizon, double *ret);

/* Returns the probability that an application starts within the horizon of m->within, before the
 * correction. */
double mixture_horizon_chance(const Mixture *m, size_t row, const double *weights);

/* Corrects a probability by the share of earlier predictions of about that size that came true. */
double mixture_horizon_correct(const Mixture *m, usec_t horizon, double p);

/* --- mixture-snapshots.c ---------------------------------------------------------------------- */

/* Takes the snapshots that are due. For a horizon of fixed length, one snapshot is due in each
 * quarter of its length. For the rest of the session, snapshots are due at the beginning and after
 * the starts 1, 2, 4, 8, … Returns 0 or -ENOMEM. */
int mixture_snapshots_take(Mixture *m);

/* Learns from the snapshots whose horizon is over. `all`: the session ends, so every horizon is
 * over. */
void mixture_snapshots_learn(Mixture *m, bool all);

/* Notes in the pending snapshots that an application has started. */
void mixture_snapshots_note_start(Mixture *m, uint32_t id);

void mixture_snapshots_done(Mixture *m);
