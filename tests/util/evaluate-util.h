/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Functions that the tests of predictors share. Symbols are letters: 'A' is item 0. */

#include "evaluate/predictor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* needs the four headers above */
#include <cmocka.h>

static inline Predictor *make_predictor(const char *name, const PredictorParameters *parameters)
{
    Predictor *p;

    assert_int_equal(predictor_new(name, parameters, 1, &p), 0);
    return p;
}

static inline PredictorParameters defaults(const char *name)
{
    PredictorParameters p;

    assert_int_equal(predictor_parameters_init(&p, name), 0);
    return p;
}

/* Observes one access for each letter, all at the same time. */
static inline void feed(Predictor *p, const char *letters)
{
    for (; *letters; letters++)
        assert_int_equal(predictor_observe(p, &(PredictorEvent){.item = (uint32_t)(*letters - 'A'),
                                                                .kind = PREDICTOR_ACCESS}),
                         0);
}

static inline void key(const char *letters, uint32_t *ret)
{
    for (; *letters; letters++)
        *ret++ = (uint32_t)(*letters - 'A');
}

/* Returns the probability of a letter now, or 0 if the letter is not predicted. */
static inline double guess_of(Predictor *p, char letter)
{
    _cleanup_guesses_ Guesses g = {0};

    assert_int_equal(predictor_predict(p, 0, 20 * USEC_PER_SEC, &g), 0);
    for (size_t i = 0; i < g.n; i++)
        if (g.guesses[i].item == (uint32_t)(letter - 'A'))
            return g.guesses[i].probability;
    return 0;
}

/* Returns the predicted letters, sorted, in a static buffer. */
static inline const char *guessed(Predictor *p)
{
    static char text[64];
    _cleanup_guesses_ Guesses g = {0};
    size_t n = 0;

    assert_int_equal(predictor_predict(p, 0, 20 * USEC_PER_SEC, &g), 0);
    assert_true(g.n < sizeof(text));
    for (char c = 'A'; c <= 'Z'; c++)
        for (size_t i = 0; i < g.n; i++)
            if (g.guesses[i].item == (uint32_t)(c - 'A'))
                text[n++] = c;
    text[n] = 0;
    return text;
}

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-9)
