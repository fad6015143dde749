/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "measure/effect.h"

#include "base/macros.h"

#include <math.h>
#include <string.h>

/* The number of neighbouring sessions before and after a session that determine its level. */
#define NEIGHBOURS 10U

/* If more sessions than this were replayed and more than this were not, the normal approximation is
 * used. */
#define EXACT_MAX 20U

/* --- the distribution of U -------------------------------------------------------------------- */

/* Returns the quantile of the normal distribution for an upper tail p <= 0.5 (Abramowitz and
 * Stegun, 26.2.23; absolute error below 4.5e-4). */
static double normal_quantile(double p)
{
    double t = sqrt(-2 * log(p));

    return t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                       (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

/* Computes the probabilities of U = 0 … size - 1, unscaled: the coefficients of
 * (1 - q^(n+1)) … (1 - q^(n+m)) / ((1 - q) … (1 - q^m)), whose sum is binomial(m + n, m). */
static void count_arrangements(double *v, size_t size, size_t m, size_t n)
{
    memset(v, 0, size * sizeof(*v));
    v[0] = 1;
    for (size_t i = 1; i <= m; i++) {
        for (size_t k = size; k-- > n + i;)
            v[k] -= v[k - n - i];
        for (size_t k = i; k < size; k++)
            v[k] += v[k - i];
    }
}

static int exact_pairs(size_t m, size_t n, double error, size_t *ret)
{
    size_t size = m * n / 2 + 1, k = 0;
    _cleanup_free_ double *v = calloc(size, sizeof(*v));
    double total, sum = 0;

    if (!v)
        return -ENOMEM;
    count_arrangements(v, size, m, n);
    total = exp(lgamma((double)(m + n) + 1) - lgamma((double)m + 1) - lgamma((double)n + 1));
    /* lgamma() rounds, and a sum that is equal must not count as larger. */
    while (k < size && sum + v[k] <= total * error / 2 * (1 + 1e-9))
        sum += v[k++];
    *ret = k;
    return 0;
}

int effect_pairs_left_out(size_t m, size_t n, double error, size_t *ret)
{
    double mean = (double)m * (double)n / 2, k;

    if (m == 0 || n == 0) {
        *ret = 0;
        return 0;
    }
    if (MIN(m, n) <= EXACT_MAX)
        return exact_pairs(MIN(m, n), MAX(m, n), error, ret);
    k = mean - normal_quantile(error / 2) * sqrt((double)m * (double)n * (double)(m + n + 1) / 12);
    *ret = k > 0 ? (size_t)k : 0;
    return 0;
}

/* --- order statistics ------------------------------------------------------------------------- */

/* Moves the k-th smallest value to v[k] and the smaller ones before it (Hoare's selection). Returns
 * that value. */
static double select_smallest(double *v, size_t n, size_t k)
{
    size_t low = 0, high = n - 1;

    while (low < high) {
        double pivot = v[low + (high - low) / 2];
        size_t i = low, j = high;

        for (;;) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i >= j)
                break;
            double t = v[i];
            v[i++] = v[j];
            v[j--] = t;
        }
        /* Values up to j are at most the pivot, values from j + 1 on are at least the pivot. */
        if (k <= j)
            high = j;
        else
            low = j + 1;
    }
    return v[k];
}

static double median(double *v, size_t n)
{
    double upper = select_smallest(v, n, n / 2);

    return n % 2 ? upper : (upper + select_smallest(v, n, n / 2 - 1)) / 2;
}

/* --- levels ----------------------------------------------------------------------------------- */

typedef struct Observation {
    double log_seconds;
    double rest;  /* log_seconds without the level */
    size_t index; /* of its EffectSession */
    uint32_t group;
    bool replayed, has_level;
} Observation;

typedef struct Sample {
    Observation *v; /* oldest first */
    size_t n, n_replayed, n_control;
} Sample;

static void sample_done(Sample *s)
{
    free(s->v);
}

/* Selects the newest sessions with replay and the newest sessions without it. */
static int select_newest(const EffectSession *sessions, size_t n, Sample *s)
{
    size_t at = n;

    s->v = calloc(n + 1, sizeof(Observation));
    if (!s->v)
        return -ENOMEM;
    for (size_t i = n; i-- > 0;) {
        const EffectSession *from = &sessions[i];
        size_t *count = from->replayed ? &s->n_replayed : &s->n_control;

        if (*count >= (from->replayed ? EFFECT_REPLAYED_MAX : EFFECT_CONTROL_MAX))
            continue;
        *count += 1;
        s->v[--at] = (Observation){.log_seconds = log(from->seconds),
                                   .index = i,
                                   .group = from->group,
                                   .replayed = from->replayed};
    }
    s->n = n - at;
    memmove(s->v, s->v + at, s->n * sizeof(Observation));
    return 0;
}

/* Adds the times of the replayed sessions before or after session i to `near`, which has `n`. Adds
 * none if more than NEIGHBOURS sessions without replay come before the nearest of them: after so
 * long without replay, the level may be another. Returns the new number. */
static size_t add_neighbours(const Sample *s, size_t i, bool after, double *near, size_t n)
{
    size_t reach = after ? s->n - i - 1 : i, found = 0, others = 0;

    for (size_t d = 1; d <= reach && found < NEIGHBOURS; d++) {
        const Observation *o = &s->v[after ? i + d : i - d];

        if (o->group != s->v[i].group)
            continue;
        if (o->replayed)
            near[n + found++] = o->log_seconds;
        else if (found == 0 && ++others > NEIGHBOURS)
            break;
    }
    return n + found;
}

/* Computes the median of the replayed sessions next to session i. Returns false if there are
 * none. */
static bool find_level(const Sample *s, size_t i, double *ret)
{
    double near[2 * NEIGHBOURS];
    size_t n = add_neighbours(s, i, false, near, 0);

    n = add_neighbours(s, i, true, near, n);
    if (n == 0)
        return false;
    *ret = median(near, n);
    return true;
}

/* Subtracts from each session the level of that session, and drops sessions without a level. */
static void subtract_levels(Sample *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        double level;

        s->v[i].has_level = find_level(s, i, &level);
        if (s->v[i].has_level)
            s->v[i].rest = s->v[i].log_seconds - level;
    }
    s->n_replayed = s->n_control = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (!s->v[i].has_level)
            continue;
        s->n_replayed += s->v[i].replayed;
        s->n_control += !s->v[i].replayed;
        s->v[n++] = s->v[i];
    }
    s->n = n;
}

/* --- which sessions count --------------------------------------------------------------------- */

int effect_find_uses(const EffectSession *v, size_t n, EffectUse *uses)
{
    _cleanup_(sample_done) Sample s = {0};
    size_t counted[2] = {0, 0};

    for (size_t i = 0; i < n; i++)
        uses[i] = EFFECT_OLD;
    CHECK(select_newest(v, n, &s));
    for (size_t i = 0; i < s.n; i++) {
        const Observation *o = &s.v[i];
        double level;

        uses[o->index] = find_level(&s, i, &level) ? EFFECT_COUNTED : EFFECT_ALONE;
        counted[o->replayed] += uses[o->index] == EFFECT_COUNTED;
    }
    /* Without a pair effect_compute() counts all replayed sessions. */
    for (size_t i = 0; i < n && counted[0] * counted[1] == 0; i++)
        if (uses[i] == EFFECT_ALONE && v[i].replayed)
            uses[i] = EFFECT_COUNTED;
    return 0;
}

/* --- the effect ------------------------------------------------------------------------------- */

/* Computes the differences of all pairs. The caller frees the result, which is NULL if memory runs
 * out. */
static double *compute_differences(const Sample *s)
{
    double *d = calloc(s->n_control * s->n_replayed, sizeof(double));
    size_t n = 0;

    for (size_t i = 0; d && i < s->n; i++)
        for (size_t k = 0; k < s->n && !s->v[i].replayed; k++)
            if (s->v[k].replayed)
                d[n++] = s->v[k].rest - s->v[i].rest;
    return d;
}

/* Returns the median time that the newest sessions take without replay. For a replayed session this
 * time is estimated from the effect. */
static double newest_seconds(const Sample *s, double log_effect)
{
    double near[2 * NEIGHBOURS];
    size_t n = 0;

    for (size_t i = s->n; i-- > 0 && n < ELEMENTSOF(near);)
        near[n++] = s->v[i].log_seconds - (s->v[i].replayed ? log_effect : 0);
    return exp(median(near, n));
}

int effect_compute(const EffectSession *sessions, size_t n, double error, Effect *ret)
{
    _cleanup_(sample_done) Sample s = {0};
    _cleanup_free_ double *d = NULL;
    size_t left_out, n_pairs, n_replayed;
    Effect e = {0};
    double middle;
    int r = select_newest(sessions, n, &s);

    if (r < 0)
        return r;
    n_replayed = s.n_replayed;
    subtract_levels(&s);
    r = effect_pairs_left_out(s.n_control, s.n_replayed, error, &left_out);
    if (r < 0)
        return r;
    e.n_replayed = s.n_replayed;
    e.n_control = s.n_control;
    n_pairs = s.n_control * s.n_replayed;
    if (n_pairs == 0) {
        e.n_replayed = n_replayed;
        *ret = e;
        return 0;
    }
    d = compute_differences(&s);
    if (!d)
        return -ENOMEM;
    middle = median(d, n_pairs);
    e.estimated = true;
    e.saved = 1 - exp(middle);
    e.control_seconds = newest_seconds(&s, middle);
    e.replayed_seconds = e.control_seconds * exp(middle);
    e.known = left_out > 0;
    if (e.known) {
        e.saved_high = 1 - exp(select_smallest(d, n_pairs, left_out - 1));
        e.saved_low = 1 - exp(select_smallest(d, n_pairs, n_pairs - left_out));
    }
    *ret = e;
    return 0;
}
