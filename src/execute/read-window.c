/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "execute/read-window.h"

#include <math.h>

/* The half-lives of the averages, in seconds. A reader that needs a new page every 10 ms reads 25
 * pages in the shorter one. */
#define SHORTER_SEC 0.25
#define LONGER_SEC  4.0

static uint64_t increase(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

static void add(ReadAverage *a, double half_sec, const ReadAverage *more)
{
    double kept = exp2(-more->sec / half_sec);

    a->sec = a->sec * kept + more->sec;
    a->used_bytes = a->used_bytes * kept + more->used_bytes;
    a->inactive_byte_sec = a->inactive_byte_sec * kept + more->inactive_byte_sec;
    a->lost_bytes = a->lost_bytes * kept + more->lost_bytes;
}

/* Returns the average lifetime of an unused page in seconds. */
static double lifetime_of(const ReadAverage *a)
{
    double most = (double)READ_WINDOW_LIFETIME_USEC / (double)USEC_PER_SEC;

    return a->inactive_byte_sec < most * a->lost_bytes ? a->inactive_byte_sec / a->lost_bytes
                                                       : most;
}

static void update_averages(ReadWindow *w, const ReadSnapshot *s)
{
    const ReadSnapshot *l = &w->last;

    if (w->begun && s->now > l->now) {
        double sec = (double)(s->now - l->now) / (double)USEC_PER_SEC;
        ReadAverage more = {
                .sec = sec,
                .used_bytes = (double)increase(l->position_bytes, s->position_bytes),
                .inactive_byte_sec = (double)s->inactive_bytes * sec,
                .lost_bytes = (double)increase(l->evicted_bytes, s->evicted_bytes) +
                              (double)increase(l->refaulted_bytes, s->refaulted_bytes),
        };

        add(&w->shorter, SHORTER_SEC, &more);
        add(&w->longer, LONGER_SEC, &more);
    }
    if (!w->begun || s->now > l->now)
        w->last = *s;
    w->begun = true;
    w->rate = w->longer.sec > 0 ? fmax(w->shorter.used_bytes / w->shorter.sec,
                                       w->longer.used_bytes / w->longer.sec)
                                : -1;
    w->lifetime = fmin(lifetime_of(&w->shorter), lifetime_of(&w->longer));
}

/* Returns 1 for a share of 0 percent, and 0 from `most` percent on. */
static double rest(double percent, double most)
{
    return percent > 0 ? fmax(1 - percent / most, 0) : 1;
}

/* Returns the share of the device's queue that idle reads may fill. */
static double share_of(const ReadSnapshot *s)
{
    if (!s->queue_known)
        return rest(s->io_stall, READ_WINDOW_IO_STALL_MAX);
    return s->queue_requests > s->own_requests ? (double)s->own_requests / (double)s->queue_requests
                                               : 1;
}

/* Returns the ideal of idle reads on a machine where nobody waits. */
static double idle_bytes(const ReadWindow *w)
{
    double delay = (double)READ_WINDOW_DELAY_USEC / (double)USEC_PER_SEC;

    return fmax(w->rate * fmin(w->lifetime / 2, delay), (double)READ_WINDOW_IDLE_BYTES);
}

static uint64_t ideal_of(const ReadWindow *w, const ReadSnapshot *s)
{
    double rest_of_lifetime = rest(s->memory_stall, READ_WINDOW_STALL_MAX), ideal;

    if (s->hot || s->memory_short || (s->idle && s->battery))
        return 0;
    /* Before the rate is known, the window grows as far as the paper's grows exponentially. */
    if (w->rate < 0)
        ideal = (double)READ_WINDOW_EXP_GROWTH_LIMIT_BYTES * rest_of_lifetime;
    else
        ideal = w->rate * w->lifetime * rest_of_lifetime / 2;
    if (s->idle && w->rate >= 0)
        ideal = rest_of_lifetime * idle_bytes(w);
    if (s->idle)
        ideal *= share_of(s);
    if (s->available_bytes > 0)
        ideal = fmin(ideal, (double)s->available_bytes / 16);
    return (uint64_t)fmin(ideal, (double)READ_WINDOW_LIMIT_BYTES);
}

uint64_t read_window_update(ReadWindow *w, const ReadSnapshot *s)
{
    uint64_t grown;

    update_averages(w, s);
    w->ideal_bytes = ideal_of(w, s);
    if (w->window_bytes < READ_WINDOW_FIRST_BYTES)
        grown = READ_WINDOW_FIRST_BYTES;
    else if (w->window_bytes < READ_WINDOW_EXP_GROWTH_LIMIT_BYTES)
        grown = MIN(w->window_bytes * 2, READ_WINDOW_EXP_GROWTH_LIMIT_BYTES);
    else
        grown = w->window_bytes + READ_WINDOW_GROWTH_FACTOR_BYTES;
    w->window_bytes = MIN(grown, w->ideal_bytes);
    return w->window_bytes;
}
