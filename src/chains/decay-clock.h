/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The clock by which learned sums decay. It follows the wall clock, but an implausible step of the
 * wall clock moves it by two weeks at most. One boot with a wrong date therefore erases nothing.
 * Pure.
 *
 * A step is plausible if it is not larger than the gap: four half-lives, and at least two weeks.
 * After a larger step, the clock keeps the offset between the wall clock and its own time:
 *
 * - Forwards (a date in the future, or a machine that was off for months): the offset is a multiple
 *   of two weeks, so the hour, the weekday and the parity of the day stay right.
 * - Backwards (a real-time clock that restarts at a fixed date): the clock continues from its
 *   latest time.
 *
 * The offset is dropped as soon as the wall clock is again within the gap of the clock's latest
 * time. If the wall clock is before DECAY_CLOCK_MIN and not within the gap, it is ignored: the
 * latest time counts. */

#include "base/macros.h"
#include "base/time-util.h"

#define DECAY_CLOCK_MIN  (UINT64_C(1577836800) * USEC_PER_SEC) /* 2020-01-01T00:00:00Z */
#define DECAY_CLOCK_STEP (14 * 24 * USEC_PER_HOUR)

typedef struct DecayClock {
    usec_t latest;       /* the latest time of this clock; 0: none */
    int64_t offset_usec; /* wall clock minus its time */
} DecayClock;

/* Returns the largest plausible step. */
static inline usec_t decay_clock_gap(usec_t halflife_usec)
{
    return MAX(MIN(halflife_usec, USEC_INFINITY / 8) * 4, DECAY_CLOCK_STEP);
}

/* Returns the time for a reading of the wall clock, and advances the clock. The result can be
 * earlier than the latest time, but not by more than the gap. */
usec_t decay_clock_observe(DecayClock *c, usec_t wall, usec_t halflife_usec);

/* Moves the clock forwards to `time`, however large the step is. Does nothing if `time` is not
 * later than the latest time. */
static inline void decay_clock_jump(DecayClock *c, usec_t time)
{
    if (time > c->latest)
        *c = (DecayClock){time, 0};
}

/* Returns the later of two clocks, compared by the latest time and then by the offset. Associative
 * and commutative. */
DecayClock decay_clock_later(DecayClock a, DecayClock b);

/* Returns the wall clock at the latest time. */
static inline usec_t decay_clock_wall(const DecayClock *c)
{
    return c->latest + (usec_t)c->offset_usec;
}

/* Returns the time to which a model with this clock must be moved before it is merged with others.
 * This is the wall clock of its latest session if the clock has an offset forwards, and the latest
 * time otherwise. If `now` is earlier than this time by more than `tolerance`, the result is `now`.
 * If `now` is before DECAY_CLOCK_MIN, the result is the latest time. */
usec_t decay_clock_settled(const DecayClock *c, usec_t now, usec_t tolerance);
