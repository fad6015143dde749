/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Regimes: simulated users for the comparison of predictors. The mixture's own model does not
 * describe the habits of these users: each regime violates one of its assumptions. All pauses are
 * as long as the pauses of people. The functions are pure.
 *
 * in-order      six applications of equal sizes in one fixed order, one every 15 minutes, sessions
 *               of 8 hours
 * order-two     the next application depends on the two that started last
 * odd-even      one succession on odd days, another on even days
 * weekday-hour  some applications on weekday mornings, others in the evenings and at the weekend
 * changed       the succession is drawn anew halfway; scored from four sessions later
 * rare-long     one application is started in one session of five, and runs until the session ends
 * bursts        tasks of three applications, seconds apart, and a quarter of an hour between tasks
 * never-closes  no application exits before the session ends
 * slow          exponential pauses with a mean of half an hour, in sessions of 3 to 7 hours
 *
 * The following three were written after the predictors were complete, and no predictor was changed
 * because of their results:
 *
 * two-users     two users alternate by weekday; on one day of ten, a holiday, the day's user has
 *               other habits
 * phases        two projects alternate, each for one to three weeks of working days
 * rare-chain    one start of thirty is a trigger; three applications that nothing else starts
 *               follow it in a fixed order */

#include "evaluate/simulate.h"

typedef enum Regime {
    REGIME_IN_ORDER,
    REGIME_ORDER_TWO,
    REGIME_ODD_EVEN,
    REGIME_WEEKDAY_HOUR,
    REGIME_CHANGED,
    REGIME_RARE_LONG,
    REGIME_BURSTS,
    REGIME_NEVER_CLOSES,
    REGIME_SLOW,
    REGIME_TWO_USERS,
    REGIME_PHASES,
    REGIME_RARE_CHAIN,
    _REGIME_MAX,
    _REGIME_INVALID = -EINVAL,
} Regime;

const char *regime_to_string(Regime r);

/* Draws sessions of one user (two for "changed" and "two-users") into an empty input, with
 * wall-clock times. *ret_training: the share of the events that only train (SimulateParameters).
 * Returns 0, -ENOMEM or -E2BIG. */
int regime_draw(Regime regime, uint64_t seed, SimulateInput *ret, double *ret_training);
