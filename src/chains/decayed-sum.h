/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Exponentially decayed sums (preload thesis 3.2.3) in fixed point, which merge exactly. Pure.
 *
 * Wall-clock time is divided into generations of DECAYED_SUM_SPAN half-lives. An observation at
 * time t in generation g has the weight floor(2^DECAYED_SUM_BITS * 2^x), where x is the number of
 * half-lives since the start of g. A newer observation has a larger weight, so older sums need not
 * be reduced again and again. A DecayedSum holds two sums of weights: that of its model's
 * generation and that of the generation before. An older observation has less than
 * 2^-DECAYED_SUM_SPAN of the weight of a new one and is dropped.
 *
 * The sums are non-negative integers that saturate, so adding them is associative and commutative.
 * If two sums of different generations are added, the result has the later generation, and a sum
 * that is two generations older is dropped. This rule is associative and commutative as well.
 * Models that are merged in any order and any grouping therefore give the same bytes. A single
 * DecayedSum has no meaning; only the quotient of two sums of the same model has one.
 *
 * A millisecond in a sum of times has 1 / 2^DECAYED_SUM_BITS of the weight of an event, so that
 * sums of times, which are the largest, do not saturate. With the default half-life, a machine that
 * is never switched off adds 5.7 * 10^13 to such a sum in one generation. The sum of 160,000 such
 * machines stays below DECAYED_SUM_MAX. */

#include "base/macros.h"
#include "base/time-util.h"

#include <math.h>

#define DECAYED_SUM_SPAN         16
#define DECAYED_SUM_BITS         8
#define DECAYED_SUM_MAX          ((uint64_t)INT64_MAX) /* sums saturate here; readers refuse more */
#define DECAYED_SUM_ROUNDED_BITS 4                     /* significant bits of a rounded sum */

#define DECAYED_SUM_HALFLIFE_DEFAULT (168 * USEC_PER_HOUR) /* thesis 5.2.1 */

typedef struct DecayedSum {
    uint64_t current;  /* sum of the model's generation */
    uint64_t previous; /* sum of the generation before it */
} DecayedSum;

static inline uint64_t decayed_sum_saturating_add(uint64_t a, uint64_t b)
{
    return a > DECAYED_SUM_MAX - b ? DECAYED_SUM_MAX : a + b;
}

static inline uint64_t decayed_sum_saturating_mul(uint64_t a, uint64_t b)
{
    uint64_t x;

    return __builtin_mul_overflow(a, b, &x) || x > DECAYED_SUM_MAX ? DECAYED_SUM_MAX : x;
}

/* Returns the generation that contains the wall-clock time t. */
static inline uint64_t decayed_sum_generation(usec_t t, usec_t halflife_usec)
{
    return t / halflife_usec / DECAYED_SUM_SPAN;
}

/* Returns the weight of one observation at time t. */
static inline uint64_t decayed_sum_weight(usec_t t, usec_t halflife_usec)
{
    usec_t into = t - decayed_sum_generation(t, halflife_usec) * DECAYED_SUM_SPAN * halflife_usec;

    return (uint64_t)(exp2((double)into / (double)halflife_usec) * (1U << DECAYED_SUM_BITS));
}

/* Returns what `msec` milliseconds add to a sum of times while an event has the weight `weight` of
 * decayed_sum_weight(): the rounded quotient of msec * weight and 2^DECAYED_SUM_BITS. `weight` can
 * also be the sum of the weights of many events. Machines of 32 bits cannot hold that product, so
 * the upper and the lower bits of both numbers are multiplied separately.
 */
static inline uint64_t decayed_sum_of_time(uint64_t msec, uint64_t weight)
{
    const uint64_t mask = (1U << DECAYED_SUM_BITS) - 1;
    uint64_t low = msec & mask, rest = low * (weight & mask) + (1U << (DECAYED_SUM_BITS - 1));

    return decayed_sum_saturating_add(decayed_sum_saturating_mul(msec >> DECAYED_SUM_BITS, weight),
                                      low * (weight >> DECAYED_SUM_BITS) +
                                              (rest >> DECAYED_SUM_BITS));
}

/* Converts a sum of times of an older model, in which a millisecond has the weight of an event. */
static inline DecayedSum decayed_sum_shorten_time(DecayedSum f)
{
    return (DecayedSum){f.current >> DECAYED_SUM_BITS, f.previous >> DECAYED_SUM_BITS};
}

/* Returns a + b. Both must belong to the same generation. */
static inline DecayedSum decayed_sum_add(DecayedSum a, DecayedSum b)
{
    return (DecayedSum){decayed_sum_saturating_add(a.current, b.current),
                        decayed_sum_saturating_add(a.previous, b.previous)};
}

/* Converts the sum to a generation that is higher by `later`. */
static inline DecayedSum decayed_sum_advance(DecayedSum f, uint64_t later)
{
    return later == 0 ? f : later == 1 ? (DecayedSum){0, f.current} : (DecayedSum){0, 0};
}

/* Returns true if the sum has saturated. Quotients with it are wrong. */
static inline bool decayed_sum_is_full(DecayedSum f)
{
    return f.current == DECAYED_SUM_MAX || f.previous == DECAYED_SUM_MAX;
}

static inline bool decayed_sum_is_zero(DecayedSum f)
{
    return f.current == 0 && f.previous == 0;
}

/* Returns true if `part` is at most `whole` in both generations. The relation stays true if both
 * sums grow by the same weight, or if both are advanced or rescaled in the same way. */
static inline bool decayed_sum_within(DecayedSum part, DecayedSum whole)
{
    return part.current <= whole.current && part.previous <= whole.previous;
}

/* Converts the sum to another clock. An observation made now weighs `from` on the old clock and
 * `to` on the new one, both of decayed_sum_weight(). It serves models that were made while the
 * clock was wrong. The result, (current + previous / 2^DECAYED_SUM_SPAN) * to / from, lies in one
 * generation and is rounded down, so it is not exact, unlike merging. Machines of 32 bits cannot
 * hold the products, so quotients and remainders of `from` are multiplied separately. */
static inline DecayedSum decayed_sum_rescale(DecayedSum f, uint64_t to, uint64_t from)
{
    uint64_t high = f.previous >> DECAYED_SUM_SPAN,
             low = f.previous & ((1U << DECAYED_SUM_SPAN) - 1),
             rest = (f.current % from + high % from) * to + (low * to >> DECAYED_SUM_SPAN),
             whole = decayed_sum_saturating_add(decayed_sum_saturating_mul(f.current / from, to),
                                                decayed_sum_saturating_mul(high / from, to));

    return (DecayedSum){decayed_sum_saturating_add(whole, rest / from), 0};
}

/* Returns the nearest number of DECAYED_SUM_ROUNDED_BITS significant bits, the larger of two that
 * are equally near, and at most DECAYED_SUM_MAX. A larger number never gets a smaller result, only
 * zero becomes zero, and a result stays as it is if it is rounded again. */
static inline uint64_t decayed_sum_round_number(uint64_t x)
{
    unsigned shift;

    if (x < 1U << DECAYED_SUM_ROUNDED_BITS)
        return x;
    shift = 64 - DECAYED_SUM_ROUNDED_BITS - (unsigned)__builtin_clzll(x);
    x = (x + (UINT64_C(1) << (shift - 1))) >> shift << shift;
    return x < DECAYED_SUM_MAX ? x : DECAYED_SUM_MAX;
}

/* Rounds the sum of both generations. A part stays within its whole. The rounded weight of a single
 * observation tells its time to within 16 to 27 hours with the default half-life. */
static inline DecayedSum decayed_sum_round(DecayedSum f)
{
    return (DecayedSum){decayed_sum_round_number(f.current), decayed_sum_round_number(f.previous)};
}

/* Returns the sum as a real number, in a unit that all sums of one model share. */
static inline double decayed_sum_value(DecayedSum f)
{
    return (double)f.current + (double)f.previous / (1U << DECAYED_SUM_SPAN);
}

/* Returns a sum of times as a real number: microseconds, multiplied by the unit of
 * decayed_sum_value(). */
static inline double decayed_sum_usec(DecayedSum f)
{
    return decayed_sum_value(f) * (1U << DECAYED_SUM_BITS) * (double)USEC_PER_MSEC;
}

/* Returns the mean of `count` times whose sum is `sum`, or 0 if nothing was observed. A file can
 * state a large `sum` and a tiny `count`, so the result is limited to 2^62. */
static inline usec_t decayed_sum_mean_usec(DecayedSum sum, DecayedSum count)
{
    double n = decayed_sum_value(count);

    return n > 0 ? (usec_t)min_double(decayed_sum_usec(sum) / n, 0x1p62) : 0;
}

/* Returns part / whole, within 0..1, or 0 if nothing was observed. */
static inline double decayed_sum_ratio(DecayedSum part, DecayedSum whole)
{
    double w = decayed_sum_value(whole);

    return w > 0 ? min_double(decayed_sum_value(part) / w, 1.0) : 0.0;
}
