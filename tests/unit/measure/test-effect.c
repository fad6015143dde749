/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "measure/effect.h"

#include "base/macros.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-9)

/* Computes the largest k with P(U < k) <= error / 2 by counting all arrangements. */
static size_t count_pairs(unsigned m, unsigned n, double error)
{
    size_t histogram[400] = {0}, total = 0, k = 0, sum = 0;

    for (uint32_t set = 0; set < 1U << (m + n); set++) {
        size_t u = 0;
        unsigned seen = 0;

        if (__builtin_popcount(set) != (int)m)
            continue;
        for (unsigned i = 0; i < m + n; i++)
            if (set & 1U << i)
                u += i - seen++;
        histogram[u]++;
        total++;
    }
    while ((double)(sum + histogram[k]) <= (double)total * error / 2)
        sum += histogram[k++];
    return k;
}

/* Compares the exact distribution with enumeration, for all small numbers of sessions. */
static void test_pairs_enumerated(void **state)
{
    for (unsigned m = 1; m <= 6; m++)
        for (unsigned n = 1; n <= 9; n++) {
            size_t k;

            assert_int_equal(effect_pairs_left_out(m, n, 0.05, &k), 0);
            assert_int_equal(k, count_pairs(m, n, 0.05));
            assert_int_equal(effect_pairs_left_out(n, m, 0.2, &k), 0);
            assert_int_equal(k, count_pairs(m, n, 0.2));
        }
}

/* Compares with the tabulated critical values of U for a two-sided error of 0.05 (Mann and Whitney;
 * Hollander, Wolfe, Chicken, table A.6): k is the critical value plus 1. */
static void test_pairs_tables(void **state)
{
    static const struct {
        size_t m, n, critical;
    } table[] = {{3, 5, 0},    {4, 4, 0},    {5, 5, 2},    {8, 8, 13},
                 {10, 10, 23}, {10, 20, 55}, {20, 20, 127}};
    size_t k;

    for (size_t i = 0; i < ELEMENTSOF(table); i++) {
        assert_int_equal(effect_pairs_left_out(table[i].m, table[i].n, 0.05, &k), 0);
        assert_int_equal(k, table[i].critical + 1);
    }
    assert_int_equal(effect_pairs_left_out(3, 4, 0.05, &k), 0);
    assert_int_equal(k, 0);
    assert_int_equal(effect_pairs_left_out(0, 9, 0.05, &k), 0);
    assert_int_equal(k, 0);
    /* The normal approximation continues the exact values. */
    assert_int_equal(effect_pairs_left_out(21, 21, 0.05, &k), 0);
    assert_true(k >= 141 && k <= 145);
}

static EffectSession session(double seconds, bool replayed, uint32_t group)
{
    return (EffectSession){.seconds = seconds, .replayed = replayed, .group = group};
}

/* Without noise the estimate is the factor, and the interval is a point. */
static void test_exact_factor(void **state)
{
    EffectSession v[44];
    Effect e;

    for (size_t i = 0; i < 44; i++)
        v[i] = session(i % 11 == 5 ? 10 : 4, i % 11 != 5, 0);
    assert_int_equal(effect_compute(v, 44, 0.05, &e), 0);
    assert_true(e.estimated && e.known);
    assert_int_equal(e.n_control, 4);
    assert_int_equal(e.n_replayed, 40);
    assert_near(e.saved, 0.6);
    assert_near(e.saved_low, 0.6);
    assert_near(e.saved_high, 0.6);
    assert_near(e.control_seconds, 10);
    assert_near(e.replayed_seconds, 4);
}

/* All replayed sessions take the same time, so all levels are equal, and it is known which pairs of
 * sessions limit the interval. */
static void test_known_interval(void **state)
{
    /* Levels: the median of the other replayed sessions is 1 each time. */
    static const double replayed[] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const double control[] = {2, 4, 8};
    EffectSession v[11];
    Effect e;

    for (size_t i = 0; i < 8; i++)
        v[i] = session(replayed[i], true, 0);
    for (size_t i = 0; i < 3; i++)
        v[8 + i] = session(control[i], false, 0);
    /* P(U = 0) = 1 / 165, P(U <= 1) = 2 / 165, P(U <= 2) = 4 / 165: k = 3 of 24 pairs. */
    assert_int_equal(effect_compute(v, 11, 0.05, &e), 0);
    assert_near(e.saved, 0.75);
    assert_near(e.saved_low, 0.5);
    assert_near(e.saved_high, 0.875);
}

static void test_not_enough(void **state)
{
    EffectSession v[8];
    Effect e;

    for (size_t i = 0; i < 8; i++)
        v[i] = session(i < 3 ? 10 : 5, i >= 3, 0);
    assert_int_equal(effect_compute(v, 0, 0.05, &e), 0);
    assert_false(e.estimated || e.known);
    assert_int_equal(effect_compute(v, 3, 0.05, &e), 0); /* no replayed session, so no level */
    assert_false(e.estimated || e.known);
    assert_int_equal(effect_compute(v, 6, 0.05, &e), 0);
    assert_true(e.estimated);
    assert_false(e.known);
    assert_near(e.saved, 0.5);
    assert_int_equal(effect_compute(v, 8, 0.05, &e), 0); /* 3 control, 5 replayed: the fewest */
    assert_true(e.known);
}

/* The first replayed session has no level, but it counts before the first pair can be compared. */
static void test_first_session(void **state)
{
    EffectSession v[] = {session(5, true, 0), session(9, false, 0)};
    Effect e;

    for (size_t n = 1; n <= 2; n++) {
        assert_int_equal(effect_compute(v, n, 0.05, &e), 0);
        assert_false(e.estimated || e.known);
        assert_int_equal(e.n_replayed, 1);
        assert_int_equal(e.n_control, n - 1);
    }
}

/* A few extreme values change neither the estimate nor the interval. */
static void test_outliers(void **state)
{
    EffectSession v[60];
    Effect e;

    for (size_t i = 0; i < 60; i++)
        v[i] = session(i % 6 == 3 ? 8 : 6, i % 6 != 3, 0);
    v[0].seconds = 6000;
    v[20].seconds = 0.001;
    v[9].seconds = 800;
    assert_int_equal(effect_compute(v, 60, 0.05, &e), 0);
    assert_near(e.saved, 0.25);
    assert_near(e.saved_low, 0.25);
    assert_near(e.saved_high, 0.25);
}

/* Users with different levels, and a machine whose level triples, do not change the factor. */
static void test_levels(void **state)
{
    EffectSession v[200];
    Effect e;

    for (size_t i = 0; i < 200; i++) {
        bool replayed = i % 20 != 8 && i % 20 != 9;
        double level = (i % 2 ? 30 : 3) * (i < 100 ? 1 : 3);

        v[i] = session(level * (replayed ? 0.8 : 1), replayed, i % 2);
    }
    assert_int_equal(effect_compute(v, 200, 0.05, &e), 0);
    assert_near(e.saved, 0.2);
    assert_near(e.saved_low, 0.2);
    assert_near(e.saved_high, 0.2);
    /* A user whose logins were never replayed has no level. */
    for (size_t i = 0; i < 200; i++)
        v[i].group = v[i].replayed ? 0 : 1;
    assert_int_equal(effect_compute(v, 200, 0.05, &e), 0);
    assert_int_equal(e.n_control, 0);
    assert_false(e.estimated);
}

/* Replay was off for a long time, and the machine changed. Sessions from before say nothing about
 * replay. */
static void test_distant_sessions(void **state)
{
    EffectSession v[62];
    EffectUse uses[62];
    Effect e;

    for (size_t i = 0; i < 62; i++) {
        bool replayed = i > 30 && i % 6 != 0;

        v[i] = session((i < 20 ? 4 : 5) * (replayed ? 0.8 : 1), replayed, 0);
    }
    effect_find_uses(v, 62, uses);
    assert_int_equal(uses[19], EFFECT_ALONE);
    assert_int_equal(uses[20], EFFECT_COUNTED); /* ten others lie between it and session 31 */
    assert_int_equal(effect_compute(v, 62, 0.05, &e), 0);
    assert_int_equal(e.n_control, 16);
    assert_near(e.saved_low, 0.2);
    assert_near(e.saved_high, 0.2);
    /* The same at the end. */
    for (size_t i = 0; i < 31; i++) {
        EffectSession swapped = v[i];

        v[i] = v[61 - i];
        v[61 - i] = swapped;
    }
    assert_int_equal(effect_compute(v, 62, 0.05, &e), 0);
    assert_int_equal(e.n_control, 16);
    assert_near(e.saved_high, 0.2);
}

static void test_bounded(void **state)
{
    EffectSession v[1200];
    Effect e;

    for (size_t i = 0; i < 1200; i++)
        v[i] = session(5 + (double)(i * 7919 % 101) / 100, i % 4 != 0, 0);
    assert_int_equal(effect_compute(v, 1200, 0.05, &e), 0);
    assert_int_equal(e.n_control, EFFECT_CONTROL_MAX);
    assert_int_equal(e.n_replayed, EFFECT_REPLAYED_MAX);
    assert_true(e.saved_low < 0 && e.saved_high > 0);
    assert_true(e.saved_low <= e.saved && e.saved <= e.saved_high);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_pairs_enumerated), cmocka_unit_test(test_pairs_tables),
            cmocka_unit_test(test_exact_factor),     cmocka_unit_test(test_known_interval),
            cmocka_unit_test(test_not_enough),       cmocka_unit_test(test_outliers),
            cmocka_unit_test(test_levels),           cmocka_unit_test(test_bounded),
            cmocka_unit_test(test_first_session),    cmocka_unit_test(test_distant_sessions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
