/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Estimates how replay changes the time of a boot or login, with a confidence interval. Pure.
 *
 * Sessions without replay are compared with sessions with it. The estimate is that of Hodges and
 * Lehmann: the median of the differences of all pairs of one session with replay and one without.
 * Its interval comes from the distribution of the Mann-Whitney statistic, exact for few sessions
 * and normal for many (Hollander, Wolfe, Chicken: Nonparametric Statistical Methods, 3rd edition,
 * 4.2 and 4.3). The method assumes no shape of the distribution, and single outliers do not move
 * the estimate.
 *
 * The differences are of logarithms, so the effect is a factor. A machine gets slower or faster
 * over the months. Therefore the level of each session is subtracted first. The level is the median
 * of those replayed sessions of the same group that are next to the session in time. The session
 * itself does not count for its level. A session whose group has no such replayed session is left
 * out. So is a session if more than ten sessions of the group without replay lie between it and the
 * nearest replayed one: the level may have changed in that time. */

#include "base/time-util.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct EffectSession {
    double seconds; /* > 0 */
    bool replayed;
    uint32_t group; /* sessions of one group have one level: the user of a login */
} EffectSession;

typedef struct Effect {
    /* Compared sessions with replay and without. If there is no pair of sessions, n_replayed is the
     * number of replayed sessions that could be compared with a control session of their group. */
    size_t n_replayed, n_control;
    bool estimated; /* false: there is no pair of sessions, and only the counts hold */
    bool known;     /* false: there are too few sessions for an interval */
    /* The share of the time of a session that replay saves: 1 - with/without. Negative: the session
     * takes more time with replay. `low` and `high` bound the interval. */
    double saved, saved_low, saved_high;
    double control_seconds;  /* median time that the newest sessions take without replay; estimated
                                for those with replay */
    double replayed_seconds; /* control_seconds * (1 - saved) */
} Effect;

/* The largest numbers of sessions with replay and of sessions without replay that are compared.
 * If there are more, the newest are compared. */
#define EFFECT_REPLAYED_MAX 400U
#define EFFECT_CONTROL_MAX  100U

/* Compares the sessions, oldest first. `error` is the probability that the interval does not
 * contain the true effect: 0.05 for a 95 % interval. Returns 0 or -ENOMEM. */
int effect_compute(const EffectSession *sessions, size_t n, double error, Effect *ret);

/* Whether effect_compute() counts a session. */
typedef enum EffectUse {
    EFFECT_COUNTED,
    EFFECT_OLD,   /* there are EFFECT_REPLAYED_MAX or EFFECT_CONTROL_MAX newer ones */
    EFFECT_ALONE, /* it has no level: its group has no other session with replay near it */
} EffectUse;

/* Sets uses[i] for each of the n sessions, oldest first. The sessions of EFFECT_COUNTED are those
 * of n_replayed and n_control. Returns 0 or -ENOMEM. */
int effect_find_uses(const EffectSession *sessions, size_t n, EffectUse *uses);

/* Computes the number of pairs that the interval leaves out at either end: the largest k with P(U <
 * k) <= error / 2, where U is the Mann-Whitney statistic of m and n sessions of one distribution.
 * *ret is 0 if even the whole range of the differences is too narrow for such an interval. Returns
 * 0 or -ENOMEM. */
int effect_pairs_left_out(size_t m, size_t n, double error, size_t *ret);
