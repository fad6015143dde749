/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The experts of a horizon: for each application the probability that it starts within a time, and
 * before the session ends. Pure.
 *
 * chains  the rates of the chains, with the end of the session as a competing risk
 *         (mixture-horizon.c)
 * next    the probability that anything starts in that time, times the distribution of the next
 *         start. The first factor is counted in the log and in the present session: among the
 *         pauses that lasted longer than the present one so far, the share that ended with a start
 *         in that time
 * age     among the logged sessions that reached the present age, the share that then started the
 *         application in that time. Sessions that had started it before are counted separately.
 *         This is the Kaplan-Meier estimate of the remaining session at this age, by application
 * alike   as "age", but sessions that agree with the present one count more (sequence.h)
 * after   among the logged pauses that followed the application that started last and that lasted
 *         longer than the present one so far, the share in which the predicted application then
 *         started in that time
 *
 * "age", "alike" and "after" are smoothed by "chains", which counts as one case. */

#include "predict/sequence.h"

/* A zeroed struct is valid. Use one struct for many computations: it keeps its memory. */
typedef struct Horizons {
    double *rows;
    size_t allocated;
} Horizons;

void horizons_done(Horizons *h);

/* Computes ret[k][i] for every expert k except HORIZON_CHAINS and for every application i that does
 * not run. ret[HORIZON_CHAINS] is an input. `next` is the distribution of the next start. If
 * `horizon` is USEC_INFINITY, it lasts until the session ends. *ret_any becomes the probability
 * that anything starts. Returns 0 or -ENOMEM. */
int horizons_compute(Horizons *h, const SequenceSituation *x, const Sequence *s, usec_t horizon,
                     const double *next, double *ret[static HORIZON_EXPERTS], double *ret_any);
