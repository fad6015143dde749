/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The experts that count starts in the log of sessions and in the present session: distributions of
 * the next start, given the starts before it. Pure.
 *
 * any          every start (the thesis's naive predictor)
 * one          starts that followed the application that started last
 * two, three   starts that followed the last two, three applications (PCM: Kroeger and Long 2001)
 * … recent     the same, but an older case counts less than the next newer one (Recent Popularity:
 *              Amer et al. 2002; if only the newest case counts, this is the last successor)
 * day          as "one", on days of the same parity
 * hour         as "one", at about this time of the day, on working days or weekends as now
 * alike        as "one", but a session counts more if its applications followed one another as in
 *              the present session
 * unused       applications that other sessions started and that this one has not (session share)
 *
 * Each distribution is smoothed by a simpler one, which gets the weight of one case at most. This
 * is the blending of prediction by partial matching (Cleary and Witten 1984). Applications that run
 * cannot start and are left out. */

#include "chains/expert-weights.h"
#include "chains/session-log.h"

#define SEQUENCE_NONE UINT32_MAX

/* The present session. Applications have the numbers of the log's history; 0 is the beginning of
 * the session. */
typedef struct SequenceSituation {
    const SessionLog *log;
    LoggedSession present; /* until now; applications that the history does not know are left out */
    uint32_t before[3];    /* the last start, that before it, …; SEQUENCE_NONE: there is none */
    const bool *runs;      /* by application */
    size_t n_applications;
    uint64_t now_msec, halflife_msec; /* wall clock */
    int64_t utc_offset_msec;          /* by which the local time is ahead of UTC */
    uint64_t age_msec;                /* of the session */
    uint64_t quiet_msec;              /* since the last start or the beginning of the session */
} SequenceSituation;

/* A zeroed struct is valid. Use one struct for many computations: it keeps its memory. */
typedef struct Sequence {
    double *chances; /* by expert and application: SEQUENCES rows of n_applications */
    size_t allocated;
    double alike[SESSION_LOG_MAX];   /* by session of the log: weight by its agreement with the
                                        present session and by its age, at most 1 */
    double decayed[SESSION_LOG_MAX]; /* by session of the log: weight by age, the latest 1 */
} Sequence;

void sequence_done(Sequence *s);

/* Computes all distributions. Each adds up to 1 over the applications that do not run, or is 0 if
 * there is no such application. Returns 0 or -ENOMEM. */
int sequence_compute(Sequence *s, const SequenceSituation *x);

static inline const double *sequence_chances(const Sequence *s, const SequenceSituation *x,
                                             unsigned expert)
{
    return s->chances + (size_t)expert * x->n_applications;
}
