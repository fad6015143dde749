/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/axis.h"

#include "base/macros.h"

#include <inttypes.h>
#include <math.h>

double axis_place(const Axis *a, double value)
{
    double share = a->to > a->from ? (value - a->from) / (a->to - a->from) : 0;

    return a->origin + a->length * fmin(fmax(share, 0), 1);
}

/* The length of an empty bucket, relative to that of a used bucket. */
#define FOLD_EMPTY 0.04

unsigned fold_bucket(double from, double to, double value)
{
    double share = to > from ? (value - from) / (to - from) : 0;

    return (unsigned)fmin(fmax(share * FOLD_BUCKETS, 0), FOLD_BUCKETS - 1);
}

void fold_compute(Fold *f, double from, double to, const bool used[static FOLD_BUCKETS])
{
    double sum = 0;

    *f = (Fold){.from = from, .to = to};
    for (unsigned i = 0; i < FOLD_BUCKETS; i++) {
        f->at[i] = sum;
        sum += used[i] ? 1 : FOLD_EMPTY;
    }
    for (unsigned i = 0; i < FOLD_BUCKETS; i++)
        f->at[i] /= sum;
    f->at[FOLD_BUCKETS] = 1;
}

double fold_place(const Fold *f, double value)
{
    unsigned i = fold_bucket(f->from, f->to, value);
    double share = f->to > f->from ? (value - f->from) / (f->to - f->from) * FOLD_BUCKETS - i : 0;

    return f->at[i] + (f->at[i + 1] - f->at[i]) * fmin(fmax(share, 0), 1);
}

double fold_value(const Fold *f, double place)
{
    unsigned i = 0;
    double share;

    while (i + 1 < FOLD_BUCKETS && f->at[i + 1] <= place)
        i++;
    share = f->at[i + 1] > f->at[i] ? (place - f->at[i]) / (f->at[i + 1] - f->at[i]) : 0;
    return f->from + (f->to - f->from) * (i + share) / FOLD_BUCKETS;
}

double axis_step(double from, double to, unsigned n)
{
    static const double factors[] = {1, 2, 5, 10};
    double least = (to - from) / n, power;

    if (!(least > 0))
        return 1;
    power = pow(10, floor(log10(least)));
    for (size_t i = 0; i < ELEMENTSOF(factors); i++)
        if (factors[i] * power >= least * (1 - 1e-9))
            return factors[i] * power;
    return 10 * power;
}

const char *axis_seconds(double seconds, double step, char buf[static AXIS_LABEL_MAX])
{
    int decimals = step >= 1 ? 0 : step >= 0.1 ? 1 : 2;

    if (step < 0.01)
        snprintf(buf, AXIS_LABEL_MAX, "%.3g ms", 1000 * seconds);
    else
        snprintf(buf, AXIS_LABEL_MAX, "%.*f s", decimals, seconds);
    return buf;
}

const char *axis_bytes(double bytes, char buf[static AXIS_LABEL_MAX])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    size_t i = 0;

    while (bytes >= 999.5 && i + 1 < ELEMENTSOF(units)) {
        bytes /= 1000;
        i++;
    }
    snprintf(buf, AXIS_LABEL_MAX, "%.*f %s", i == 0 || bytes >= 99.95 ? 0 : 1, bytes, units[i]);
    return buf;
}

const char *axis_duration(usec_t t, char buf[static AXIS_LABEL_MAX])
{
    double s = (double)t / USEC_PER_SEC;

    if (t < USEC_PER_SEC)
        snprintf(buf, AXIS_LABEL_MAX, "%.0f ms", 1000 * s);
    else if (s < 9.95)
        snprintf(buf, AXIS_LABEL_MAX, "%.1f s", s);
    else if (s < 99.5)
        snprintf(buf, AXIS_LABEL_MAX, "%.0f s", s);
    else if (s < 3599.5)
        snprintf(buf, AXIS_LABEL_MAX, "%" PRIu64 " min %02" PRIu64 " s",
                 (t + USEC_PER_SEC / 2) / (60 * USEC_PER_SEC),
                 (t + USEC_PER_SEC / 2) / USEC_PER_SEC % 60);
    else
        snprintf(buf, AXIS_LABEL_MAX, "%" PRIu64 " h %02" PRIu64 " min",
                 (t + 30 * USEC_PER_SEC) / (3600 * USEC_PER_SEC),
                 (t + 30 * USEC_PER_SEC) / (60 * USEC_PER_SEC) % 60);
    return buf;
}
