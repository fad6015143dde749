/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Random numbers from a seed (SplitMix64, Steele et al. 2014), the same on every machine. They are
 * not for secrets. */

#include <math.h>
#include <stdint.h>

typedef struct Random {
    uint64_t state;
} Random;

static inline uint64_t random_uint64(Random *r)
{
    uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Draws a number in [0, 1). */
static inline double random_uniform(Random *r)
{
    return (double)(random_uint64(r) >> 11) * 0x1p-53;
}

static inline uint32_t random_below(Random *r, uint32_t n)
{
    return (uint32_t)(random_uniform(r) * n);
}

static inline double random_exponential(Random *r, double mean)
{
    return -mean * log1p(-random_uniform(r));
}

static inline double random_normal(Random *r)
{
    double u = 1 - random_uniform(r), v = random_uniform(r);

    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* Draws from the gamma distribution with that shape and scale 1 (Marsaglia and Tsang 2000). */
static inline double random_gamma(Random *r, double shape)
{
    double d, c;

    if (shape < 1)
        return random_gamma(r, shape + 1) * pow(1 - random_uniform(r), 1 / shape);
    d = shape - 1.0 / 3;
    c = 1 / sqrt(9 * d);
    for (;;) {
        double x = random_normal(r), v = 1 + c * x;

        if (v <= 0)
            continue;
        v = v * v * v;
        if (log(1 - random_uniform(r)) < 0.5 * x * x + d - d * v + d * log(v))
            return d * v;
    }
}
