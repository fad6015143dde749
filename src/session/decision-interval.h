/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The minimum time between two decisions of the session cycle. Pure.
 *
 * A start of an application leads to a decision at once, and several starts in a row to one. If
 * starts do not stop, as those of a program in a loop, the interval doubles with each decision, up
 * to DECISION_INTERVAL_MAX_USEC or that of the cycle. Otherwise each decision would take processor
 * time and replace the requests that the prefetch thread is executing, as long as the loop lasts.
 * The loop may be another user's, so the limit is short. */

#include "base/time-util.h"

#define DECISION_INTERVAL_MIN_USEC (250 * USEC_PER_MSEC)
#define DECISION_INTERVAL_MAX_USEC (4 * USEC_PER_SEC) /* less than DECISION_RARE_USEC */
/* Starts that are this far apart on average are rare: each of them may lead to a decision. */
#define DECISION_RARE_USEC (5 * USEC_PER_SEC)

/* Returns the interval that follows a decision, at least DECISION_INTERVAL_MIN_USEC.
 * `interval_usec`: the one before it, or 0. `n_starts`: the starts in the `since_usec` since the
 * decision before. `cycle_usec`: the time between two decisions without starts (Cycle=). */
usec_t decision_interval_next(usec_t interval_usec, usec_t since_usec, uint64_t n_starts,
                              usec_t cycle_usec);
