/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "trace/trace.h"

#include <math.h>

/* Returns true if `s`, as sample i, is later than the sample before it and its totals are not
 * smaller. */
static bool follows(const TraceSample *samples, size_t i, const TraceSample *s)
{
    const TraceSample *before = i > 0 ? &samples[i - 1] : &(TraceSample){0};

    return s->at > before->at && s->busy >= before->busy && s->stalled >= before->stalled;
}

int trace_add_sample(Trace *t, const TraceSample *s)
{
    int r;

    if (!follows(t->samples, t->n_samples, s))
        return -EINVAL;
    if (t->n_samples >= TRACE_SAMPLES_MAX)
        return -E2BIG;
    r = grow_array(&t->samples, &t->allocated_samples, t->n_samples + 1, sizeof(TraceSample));
    if (r >= 0)
        t->samples[t->n_samples++] = *s;
    return r;
}

bool trace_samples_valid(const Trace *t)
{
    for (size_t i = 0; i < t->n_samples; i++)
        if (!follows(t->samples, i, &t->samples[i]))
            return false;
    return t->n_samples <= TRACE_SAMPLES_MAX;
}

/* Returns the longest time for which tasks can have waited if the kernel reports `stalled` on n
 * processors that computed for `busy`: the w with w^2 = n (w + busy) stalled. */
static double waited_at_most(double stalled, double busy, double n)
{
    return (n * stalled + sqrt(n * stalled * (n * stalled + 4 * busy))) / 2;
}

/* Estimates how long tasks waited in the time from one sample to the next. */
static double waited_between(const TraceSample *from, const TraceSample *to, double n_cpus)
{
    double time = (double)(to->at - from->at), busy = (double)(to->busy - from->busy),
           stalled = fmin((double)(to->stalled - from->stalled), time);

    return fmax(stalled, fmin(time - busy, waited_at_most(stalled, busy, n_cpus)));
}

usec_t trace_waited(const Trace *t)
{
    const TraceTiming *g = &t->timing;
    const TraceSample ready = {g->ready, g->busy, g->stalled};
    TraceSample before = {0};
    double sum = 0;

    if (g->busy == 0) /* unknown */
        return MIN(g->stalled, g->ready);
    for (size_t i = 0; i < t->n_samples; i++) {
        const TraceSample *s = &t->samples[i];

        if (s->at >= g->ready || s->busy > g->busy || s->stalled > g->stalled)
            break;
        sum += waited_between(&before, s, MAX(g->n_cpus, 1U));
        before = *s;
    }
    sum += waited_between(&before, &ready, MAX(g->n_cpus, 1U));
    return MIN(MAX((usec_t)sum, g->stalled), g->ready);
}
