/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Exponentially fading sums (thesis 3.2.3) in fixed point, so that merging is exact.
 *
 * Wall-clock time is divided into generations of FADE_SPAN half-lives. An observation at time t, in
 * generation g, has the weight floor(2^FADE_BITS * 2^x), x = half-lives since the start of g: newer
 * observations weigh more, instead of older ones being decayed again and again. A Fade holds the
 * sum of weights of its model's generation and of the one before; what is older has less than
 * 2^-FADE_SPAN of a new observation's weight and is dropped.
 *
 * Sums of non-negative integers that saturate are associative and commutative, and so is "the later
 * generation wins, what is two behind it is dropped": therefore merging models in any order and any
 * grouping gives the same bytes. Only quotients of Fades of one model mean anything. Pure. */

#include "base/macros.h"
#include "base/time-util.h"

#include <math.h>

#define FADE_SPAN 16
#define FADE_BITS 8
#define FADE_MAX  ((uint64_t)INT64_MAX) /* sums saturate here; readers refuse more */

#define FADE_HALFLIFE_DEFAULT (168 * USEC_PER_HOUR) /* thesis 5.2.1 */

typedef struct Fade {
    uint64_t current;  /* of the model's generation */
    uint64_t previous; /* of the one before it */
} Fade;

static inline uint64_t fade_saturating_add(uint64_t a, uint64_t b)
{
    return a > FADE_MAX - b ? FADE_MAX : a + b;
}

/* The generation that holds the wall-clock time t. */
static inline uint64_t fade_generation(usec_t t, usec_t halflife)
{
    return t / halflife / FADE_SPAN;
}

/* The weight of one observation at time t. */
static inline uint64_t fade_weight(usec_t t, usec_t halflife)
{
    usec_t into = t - fade_generation(t, halflife) * FADE_SPAN * halflife;

    return (uint64_t)(exp2((double)into / (double)halflife) * (1U << FADE_BITS));
}

/* a + b, of the same generation. */
static inline Fade fade_add(Fade a, Fade b)
{
    return (Fade){fade_saturating_add(a.current, b.current),
                  fade_saturating_add(a.previous, b.previous)};
}

/* The same sum seen from a generation `later` generations on. */
static inline Fade fade_advance(Fade f, uint64_t later)
{
    return later == 0 ? f : later == 1 ? (Fade){0, f.current} : (Fade){0, 0};
}

/* True if it has saturated: quotients with it are wrong. */
static inline bool fade_is_full(Fade f)
{
    return f.current == FADE_MAX || f.previous == FADE_MAX;
}

static inline bool fade_is_zero(Fade f)
{
    return f.current == 0 && f.previous == 0;
}

/* A part of a whole has no more of either generation. Adding, advancing and rescaling keep that. */
static inline bool fade_within(Fade part, Fade whole)
{
    return part.current <= whole.current && part.previous <= whole.previous;
}

/* The same sum under another clock, on which the weight `from` of now is `to`: for models made
 * while the clock was wrong. All in one generation, rounded down; not exact as merging is. */
static inline Fade fade_rescale(Fade f, uint64_t to, uint64_t from)
{
    __extension__ typedef unsigned __int128 Wide;
    Wide sum = ((Wide)f.current << FADE_SPAN) + f.previous;

    sum = (sum * to / from) >> FADE_SPAN; /* below 2^(63 + 1 + SPAN + BITS + SPAN) */
    return (Fade){sum > FADE_MAX ? FADE_MAX : (uint64_t)sum, 0};
}

/* The sum as a real number, in units that all Fades of one model share. */
static inline double fade_value(Fade f)
{
    return (double)f.current + (double)f.previous / (1U << FADE_SPAN);
}

/* part / whole, within 0..1; 0 if nothing was observed. */
static inline double fade_ratio(Fade part, Fade whole)
{
    double w = fade_value(whole);

    return w > 0 ? fmin(fade_value(part) / w, 1.0) : 0.0;
}
