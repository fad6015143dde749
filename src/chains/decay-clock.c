/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "chains/decay-clock.h"

static bool is_near(usec_t a, usec_t b, usec_t gap)
{
    return (a > b ? a - b : b - a) <= gap;
}

usec_t decay_clock_observe(DecayClock *c, usec_t wall, usec_t halflife_usec)
{
    usec_t gap = decay_clock_gap(halflife_usec), shifted, at;

    wall = MIN(wall, (usec_t)INT64_MAX);
    shifted = wall - (usec_t)c->offset_usec;
    if (c->latest == 0 || is_near(wall, c->latest, gap)) {
        c->offset_usec = 0;
        at = wall;
    } else if (wall < DECAY_CLOCK_MIN)
        return c->latest;
    else if (shifted <= INT64_MAX && is_near(shifted, c->latest, gap))
        at = shifted;
    else {
        at = c->latest + (wall > c->latest ? (wall - c->latest) % DECAY_CLOCK_STEP : 0);
        c->offset_usec = (int64_t)(wall - at);
    }
    c->latest = MAX(c->latest, at);
    return at;
}

DecayClock decay_clock_later(DecayClock a, DecayClock b)
{
    if (a.latest != b.latest)
        return a.latest > b.latest ? a : b;
    return a.offset_usec > b.offset_usec ? a : b;
}

usec_t decay_clock_settled(const DecayClock *c, usec_t now, usec_t tolerance)
{
    usec_t t = MAX(c->latest, decay_clock_wall(c));

    if (now < DECAY_CLOCK_MIN)
        return c->latest;
    return t > now && t - now > tolerance ? now : t;
}
