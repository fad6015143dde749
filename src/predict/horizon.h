/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The experts of a horizon: for each application the probability that it starts within a time, and
 * before the session ends. Pure.
 *
 * chains  the rates of the chains, with the end of the session as a competing risk (mixture.c)
 * next    the probability that anything starts in that time, times the distribution of the next
 *         start. How long a pause lasts is counted in the log, of the pauses that have already
 *         lasted as long as the present one, the end of the session included
 * age     the share of the logged sessions that reached the present age and then started the
 *         application in that time, counted apart for sessions that had started it before and
 *         that had not. This is the Kaplan-Meier estimate of the remaining session at this age,
 *         by application
 * alike   the same; sessions that agree with the present one count more (sequence.h)
 * after   the share of the cases in which the application that started last was followed by this
 *         one in that time, after a pause as long as the present one
 *
 * "age", "alike" and "after" are smoothed by "chains", which counts as one case. */

#include "predict/sequence.h"

/* Zeroed is valid. Use one for many computations: it keeps its memory. */
typedef struct Horizons {
    double *rows;
    size_t allocated;
} Horizons;

void horizons_done(Horizons *h);

/* Computes ret[k][i] for every expert k but HORIZON_CHAINS, whose results are an input, and every
 * application i. `next`: the distribution of the next start. USEC_INFINITY as horizon: until the
 * session ends. *ret_any: the probability that anything starts. 0 or -ENOMEM. */
int horizons_compute(Horizons *h, const SequenceSituation *x, const Sequence *s, usec_t horizon,
                     const double *next, double *ret[static HORIZON_EXPERTS], double *ret_any);
