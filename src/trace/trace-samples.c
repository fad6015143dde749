/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "trace/trace.h"

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
