/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "device/estimate.h"

#include "base/time-util.h"

#include <math.h>
#include <stdlib.h>

/* A short seek and half a rotation take 2.5 ms at 15,000 rpm and 5 ms at 7,200 rpm. Flash memory
 * reads any position in less than 1 ms; SD cards sometimes take longer. */
#define SEEK_MIN_USEC (2.0 * USEC_PER_MSEC)
/* No seek and rotation of a mechanical disk takes longer. A volume that is loaded from a snapshot
 * takes longer when a position is read for the first time. */
#define SEEK_MAX_USEC 25000.0
#define SEEK_RATIO    4.0
/* NEAR and FAR take equally long if they differ by at most this factor. */
#define EQUAL_RATIO 2.0

/* Samples that returned zeros are ignored if there are at least this many others. */
#define NONZERO_MIN 4U
/* To find out whether the device seeks, they are ignored only if they took less time than the
 * others by this factor: the device has answered them without a seek. */
#define ZEROED_RATIO 2.0

/* Half a rotation at 15,000 rpm (2.0 ms) and at 4,200 rpm (7.1 ms), with a margin. */
#define HALF_ROTATION_MIN_USEC 1900.0
#define HALF_ROTATION_MAX_USEC 7200.0
#define ROTATION_SAMPLES_MIN   24U

/* A slope is estimated only if the square roots of the distances, which are shares of the volume's
 * size, span at least this range. */
#define ROOT_RANGE_MIN 0.15
#define ROOT_STEP_MIN  0.05

/* Sweeps correct a profile only if its error exceeds the tolerance, and by at most the maximum.
 * Both are factors. */
#define REFINE_TOLERANCE 1.25
#define REFINE_MAX       2.0

#define SLOPES_MAX (DEVICE_SAMPLES_MAX * DEVICE_SAMPLES_MAX / 2)

typedef struct Values {
    double v[SLOPES_MAX];
    unsigned n;
} Values;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorts n > 0 values and returns their quantile q. */
static double quantile(Values *x, double q)
{
    double at = q * (x->n - 1);
    unsigned i = (unsigned)at;

    qsort(x->v, x->n, sizeof(double), compare);
    return i + 1 < x->n ? x->v[i] + (at - i) * (x->v[i + 1] - x->v[i]) : x->v[x->n - 1];
}

typedef bool (*sample_filter_t)(const DeviceSample *s, uint64_t argument);
typedef double (*sample_value_t)(const DeviceSample *s, double argument);

static double time_of(const DeviceSample *s, double argument)
{
    return (double)s->usec;
}

/* Collects the value of each sample that passes the filter and returned zeros (`zeroed` = 1), did
 * not (0), or either (-1). */
static void collect_some(const DeviceSamples *s, DeviceSampleKind k, sample_filter_t filter,
                         uint64_t filter_argument, sample_value_t value, double argument,
                         int zeroed, Values *ret)
{
    ret->n = 0;
    for (unsigned i = 0; i < s->n[k]; i++) {
        const DeviceSample *x = &s->items[k][i];

        if (filter(x, filter_argument) && (zeroed < 0 || x->zeroed == (zeroed > 0)))
            ret->v[ret->n++] = value(x, argument);
    }
}

/* Collects the value of each sample that passes the filter. If enough of these samples did not
 * return zeros, skips those that did. */
static void collect(const DeviceSamples *s, DeviceSampleKind k, sample_filter_t filter,
                    uint64_t filter_argument, sample_value_t value, double argument, Values *ret)
{
    collect_some(s, k, filter, filter_argument, value, argument, 0, ret);
    if (ret->n < NONZERO_MIN)
        collect_some(s, k, filter, filter_argument, value, argument, -1, ret);
}

/* Collects the time of each sample that passes the filter. Skips samples that returned zeros only
 * if the device has answered them without a seek. */
static void collect_seeks(const DeviceSamples *s, DeviceSampleKind k, sample_filter_t filter,
                          uint64_t filter_argument, Values *ret)
{
    double zeroed = 0, others = 0;

    collect_some(s, k, filter, filter_argument, time_of, 0, 1, ret);
    if (ret->n > 0)
        zeroed = quantile(ret, 0.5);
    collect_some(s, k, filter, filter_argument, time_of, 0, 0, ret);
    if (ret->n >= NONZERO_MIN)
        others = quantile(ret, 0.5);
    if (others <= ZEROED_RATIO * zeroed || ret->n < NONZERO_MIN)
        collect_some(s, k, filter, filter_argument, time_of, 0, -1, ret);
}

static bool is_any(const DeviceSample *s, uint64_t argument)
{
    return true;
}

static bool has_distance(const DeviceSample *s, uint64_t distance)
{
    return s->distance == distance;
}

static bool has_depth(const DeviceSample *s, uint64_t depth)
{
    return s->depth == depth;
}

/* Returns the rate in bytes per usec. A positive `latency` is subtracted once. Of a negative one,
 * the amount is subtracted for each request. */
static double rate_of(const DeviceSample *s, double latency)
{
    double usec = fmax((double)s->usec, 1);
    double net = usec - (latency < 0 ? -latency * s->requests : latency);

    /* If latency takes most of the time, the net time is uncertain and the rate is bounded. */
    return (double)s->length * s->requests / fmax(net, usec / 2);
}

/* Returns the throughput in requests per usec. `transfer` is the time of the transfer of one
 * request. The transfers of the last `depth` - 1 requests follow after all latencies, so their time
 * is subtracted. */
static double throughput_of(const DeviceSample *s, double transfer)
{
    double usec = fmax((double)s->usec, 1);

    return s->requests / fmax(usec - (s->depth - 1) * transfer, usec / 2);
}

static double root_of(const DeviceSample *s, double size)
{
    return sqrt(fmin((double)s->distance / size, 1));
}

static bool is_long(const DeviceSample *s, uint64_t bytes)
{
    return (uint64_t)s->length * s->requests >= bytes;
}

static void estimate_rate(const DeviceSamples *s, double latency, DeviceEstimate *e, Values *x)
{
    uint64_t longest = 0;

    for (unsigned i = 0; i < s->n[DEVICE_SAMPLE_STREAM]; i++) {
        const DeviceSample *stream = &s->items[DEVICE_SAMPLE_STREAM][i];

        longest = MAX(longest, (uint64_t)stream->length * stream->requests);
    }
    collect(s, DEVICE_SAMPLE_STREAM, is_long, longest / 2, rate_of, latency, x);
    e->rate_measured = x->n >= DEVICE_STREAM_MIN;
    if (e->rate_measured)
        e->profile.rate_bytes_per_usec = quantile(x, 0.75);
}

int device_seeks_slowly(const DeviceSamples *s)
{
    Values far, near;
    double typical, fast_far, fast_near;

    collect_seeks(s, DEVICE_SAMPLE_FAR, is_any, 0, &far);
    if (far.n < DEVICE_FAR_MIN)
        return -ENODATA;
    typical = quantile(&far, 0.5);
    if (typical < SEEK_MIN_USEC)
        return 0;
    collect_seeks(s, DEVICE_SAMPLE_NEAR, has_distance, 0, &near);
    if (near.n < DEVICE_NEAR_MIN || typical > SEEK_MAX_USEC)
        return -ENODATA;
    fast_far = quantile(&far, 0.1);
    fast_near = quantile(&near, 0.25);
    /* Load slows NEAR and FAR alike. Only on a disk that seeks is the fastest quarter of NEAR
     * faster than almost every FAR. */
    if (typical >= SEEK_RATIO * fast_near && fast_far > EQUAL_RATIO * fast_near)
        return 1;
    if (near.n < 2 * DEVICE_NEAR_MIN)
        return -ENODATA;
    return quantile(&near, 0.1) * EQUAL_RATIO >= fast_far ? 0 : -ENODATA;
}

/* Fits a line through FAR and sets *ret_slope to its slope. Returns false if the distances are too
 * similar. `x` is used for the calculation. */
static bool fit_line(const DeviceSample *items, unsigned n, double size, double *ret_slope,
                     Values *x)
{
    double lo = 1, hi = 0;

    x->n = 0;
    for (unsigned i = 0; i < n; i++) {
        lo = fmin(lo, root_of(&items[i], size));
        hi = fmax(hi, root_of(&items[i], size));
        for (unsigned k = 0; k < i; k++) {
            double run = root_of(&items[i], size) - root_of(&items[k], size);

            if (fabs(run) >= ROOT_STEP_MIN)
                x->v[x->n++] = ((double)items[i].usec - (double)items[k].usec) / run;
        }
    }
    if (hi - lo < ROOT_RANGE_MIN || x->n == 0)
        return false;
    *ret_slope = fmax(quantile(x, 0.5), 0);
    return true;
}

/* Collects for each sample its time minus `slope` times the root of its distance. */
static void collect_residues(const DeviceSample *items, unsigned n, double size, double slope,
                             Values *ret)
{
    ret->n = 0;
    for (unsigned i = 0; i < n; i++)
        ret->v[ret->n++] = (double)items[i].usec - slope * root_of(&items[i], size);
}

/* Returns the longest gap for which waiting takes less time than seeking; 0 if there is none among
 * the measured ones. `height` is the time of the shortest seek and half a rotation. */
static uint64_t estimate_wait(const DeviceSamples *s, double height, Values *x)
{
    uint64_t longest = 0;

    for (unsigned i = 0; i < s->n[DEVICE_SAMPLE_NEAR]; i++) {
        uint64_t gap = s->items[DEVICE_SAMPLE_NEAR][i].distance;

        if (gap <= longest)
            continue;
        collect(s, DEVICE_SAMPLE_NEAR, has_distance, gap, time_of, 0, x);
        if (quantile(x, 0.25) < 0.75 * height)
            longest = gap;
    }
    return longest;
}

static void estimate_seeks(const DeviceSamples *s, double size, const DeviceProfile *start,
                           DeviceEstimate *e, Values *x)
{
    const DeviceSample *items = s->items[DEVICE_SAMPLE_FAR];
    unsigned n = s->n[DEVICE_SAMPLE_FAR];
    DeviceProfile *d = &e->profile;
    double slope = fmax(start->seek_max_usec - start->seek_min_usec, 0), height, spread, half;
    uint64_t wait;

    collect(s, DEVICE_SAMPLE_NEAR, has_distance, 0, time_of, 0, x);
    d->fixed_usec = fmax(quantile(x, 0.1) - 4096 / d->rate_bytes_per_usec, 1);
    e->latency_measured = true;
    d->depth = 1;
    e->depth_measured = true;
    e->seek_measured = fit_line(items, n, size, &slope, x);

    collect_residues(items, n, size, slope, x);
    height = quantile(x, 0.5);
    spread = quantile(x, 0.9) - quantile(x, 0.1);
    height = fmax(height - d->fixed_usec - 4096 / d->rate_bytes_per_usec, 0);
    /* A uniform distribution over a rotation has 0.8 rotations between these quantiles. */
    half = spread / 1.6;
    if (n < ROTATION_SAMPLES_MIN || half < HALF_ROTATION_MIN_USEC || half > HALF_ROTATION_MAX_USEC)
        half = start->half_rotation_usec;
    d->half_rotation_usec = fmin(half, height);
    d->seek_min_usec = height - d->half_rotation_usec;
    d->seek_max_usec = fmax(d->seek_min_usec + slope, 1);
    wait = estimate_wait(s, height, x);
    if (wait > 0)
        d->wait_bytes = wait;
}

static void estimate_depth(const DeviceSamples *s, double latency, DeviceEstimate *e, Values *x)
{
    double full = 0;

    for (unsigned depth = 2; depth <= DEVICE_DEPTH_MAX; depth *= 2) {
        collect(s, DEVICE_SAMPLE_PARALLEL, has_depth, depth, throughput_of,
                4096 / e->profile.rate_bytes_per_usec, x);
        if (x->n > 0)
            full = fmax(full, quantile(x, 0.5));
    }
    e->depth_measured = full > 0;
    if (e->depth_measured)
        e->profile.depth = (unsigned)fmin(fmax(round(full * latency), 1), DEVICE_DEPTH_MAX);
}

void device_refine(DeviceProfile *d, const DeviceSweep *sweeps, unsigned n)
{
    double factor;
    Values x = {.n = 0};

    for (unsigned i = 0; i < n; i++)
        if (sweeps[i].predicted_usec > 0)
            x.v[x.n++] = (double)sweeps[i].measured_usec / (double)sweeps[i].predicted_usec;
    if (x.n < DEVICE_SWEEPS_MIN)
        return;
    factor = fmin(fmax(quantile(&x, 0.5), 1 / REFINE_MAX), REFINE_MAX);
    if (factor >= 1 / REFINE_TOLERANCE && factor <= REFINE_TOLERANCE)
        return;
    d->rate_bytes_per_usec /= factor;
    d->fixed_usec *= factor;
    d->seek_min_usec *= factor;
    d->seek_max_usec *= factor;
    d->half_rotation_usec *= factor;
}

static bool has_slow_first_reads(const DeviceSamples *s, bool seeks_slowly)
{
    Values x;

    if (seeks_slowly || s->n[DEVICE_SAMPLE_FAR] < DEVICE_FAR_MIN)
        return false;
    collect_some(s, DEVICE_SAMPLE_FAR, is_any, 0, time_of, 0, -1, &x);
    return quantile(&x, 1 - DEVICE_SLOW_FIRST_PART) > DEVICE_SLOW_FIRST_USEC;
}

void device_estimate(const DeviceSamples *s, uint64_t size_bytes, const DeviceProfile *start,
                     DeviceEstimate *ret)
{
    DeviceEstimate e = {.profile = *start, .seeks_slowly = start->seek_max_usec > 0};
    DeviceProfile *d = &e.profile;
    int seeks = device_seeks_slowly(s);
    Values x;

    if (seeks >= 0)
        e.seeks_slowly = seeks > 0;
    e.slow_first_reads = has_slow_first_reads(s, e.seeks_slowly);
    estimate_rate(s, 0, &e, &x);
    e.seeks_clear = seeks >= 0;
    if (!e.seeks_clear) {
        *ret = e;
        return;
    }
    if (e.seeks_slowly)
        estimate_seeks(s, (double)MAX(size_bytes, UINT64_C(1)), start, &e, &x);
    else {
        double latency;

        collect(s, DEVICE_SAMPLE_FAR, is_any, 0, time_of, 0, &x);
        latency = quantile(&x, 0.25);
        d->fixed_usec = fmax(latency - 4096 / d->rate_bytes_per_usec, 1);
        d->seek_min_usec = d->seek_max_usec = d->half_rotation_usec = 0;
        d->wait_bytes = 0;
        e.latency_measured = e.seek_measured = true;
        estimate_depth(s, latency, &e, &x);
    }
    estimate_rate(s, d->depth == 1 ? -d->fixed_usec : d->fixed_usec, &e, &x);
    *ret = e;
}
