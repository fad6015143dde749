/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "chains/decayed-sum.h"
#include "model/weighted-ranges.h"

#include "evaluate/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* needs the four headers above */
#include <cmocka.h>

#define H DECAYED_SUM_HALFLIFE_DEFAULT

static bool equal(DecayedSum a, DecayedSum b)
{
    return a.current == b.current && a.previous == b.previous;
}

/* Extreme values, for which a wrong implementation gives a wrong sum. */
static const uint64_t hostile[] = {
        0,
        1,
        2,
        255,
        256,
        1U << 24,
        DECAYED_SUM_MAX / 2,
        DECAYED_SUM_MAX / 2 + 1,
        DECAYED_SUM_MAX - 1,
        DECAYED_SUM_MAX,
};

static DecayedSum nth(size_t i)
{
    return (DecayedSum){hostile[i % ELEMENTSOF(hostile)], hostile[i / ELEMENTSOF(hostile)]};
}

#define N (ELEMENTSOF(hostile) * ELEMENTSOF(hostile))

static void weights_double_each_halflife(void **state)
{
    usec_t start = 7 * DECAYED_SUM_SPAN * H;

    assert_int_equal(decayed_sum_generation(start, H), 7);
    assert_int_equal(decayed_sum_generation(start - 1, H), 6);
    for (unsigned i = 0; i < DECAYED_SUM_SPAN; i++)
        assert_int_equal(decayed_sum_weight(start + i * H, H), UINT64_C(1)
                                                                       << (DECAYED_SUM_BITS + i));
    assert_int_equal(decayed_sum_weight(start + DECAYED_SUM_SPAN * H, H), 1U << DECAYED_SUM_BITS);
    assert_in_range(decayed_sum_weight(start + H / 2, H), 362, 362); /* 256 times the root of 2 */
}

static void weights_never_fall_nor_leave_their_bounds(void **state)
{
    static const usec_t halflives[] = {1, 7,        USEC_PER_SEC,
                                       H, 1000 * H, INT64_MAX / DECAYED_SUM_SPAN};

    for (size_t k = 0; k < ELEMENTSOF(halflives); k++) {
        usec_t h = halflives[k], span = h * DECAYED_SUM_SPAN;
        uint64_t last = 0;

        for (unsigned i = 0; i < 1000; i++) {
            uint64_t w = decayed_sum_weight(span / 1000 * i, h);

            assert_true(w >= last && w >= 1U << DECAYED_SUM_BITS);
            assert_true(w < UINT64_C(1) << (DECAYED_SUM_BITS + DECAYED_SUM_SPAN));
            last = w;
        }
        assert_true(decayed_sum_weight(UINT64_MAX, h) <
                    UINT64_C(1) << (DECAYED_SUM_BITS + DECAYED_SUM_SPAN));
    }
}

/* The weight of an observation is continuous where a generation begins. */
static void values_are_continuous_across_generations(void **state)
{
    usec_t end = 3 * DECAYED_SUM_SPAN * H;
    DecayedSum before = {decayed_sum_weight(end - 1, H), 0},
               after = {decayed_sum_weight(end, H), 0};
    double ratio = decayed_sum_value(decayed_sum_advance(before, 1)) / decayed_sum_value(after);

    assert_true(ratio > 0.9999 && ratio <= 1.0);
    /* The two observations are ten half-lives apart, in the same generation or in successive ones.
     */
    for (unsigned i = 0; i < DECAYED_SUM_SPAN; i++) {
        usec_t t = end - DECAYED_SUM_SPAN * H + i * H, u = t + 10 * H;
        DecayedSum x =
                decayed_sum_advance((DecayedSum){decayed_sum_weight(t, H), 0},
                                    decayed_sum_generation(u, H) - decayed_sum_generation(t, H));
        DecayedSum y = {decayed_sum_weight(u, H), 0};

        ratio = decayed_sum_value(y) / decayed_sum_value(x);
        assert_true(fabs(ratio - 1024) < 1e-6);
    }
}

static void adding_is_associative_and_commutative(void **state)
{
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++) {
            assert_true(equal(decayed_sum_add(nth(i), nth(j)), decayed_sum_add(nth(j), nth(i))));
            for (size_t k = 0; k < N; k++)
                assert_true(equal(decayed_sum_add(decayed_sum_add(nth(i), nth(j)), nth(k)),
                                  decayed_sum_add(nth(i), decayed_sum_add(nth(j), nth(k)))));
        }
}

/* Advancing in one step or in several, before or after adding, gives the same sum. */
static void advancing_commutes_with_adding(void **state)
{
    for (size_t i = 0; i < N; i++)
        for (uint64_t a = 0; a < 4; a++) {
            for (uint64_t b = 0; b < 4; b++)
                assert_true(equal(decayed_sum_advance(decayed_sum_advance(nth(i), a), b),
                                  decayed_sum_advance(nth(i), a + b)));
            for (size_t j = 0; j < N; j++)
                assert_true(equal(decayed_sum_advance(decayed_sum_add(nth(i), nth(j)), a),
                                  decayed_sum_add(decayed_sum_advance(nth(i), a),
                                                  decayed_sum_advance(nth(j), a))));
        }
    assert_true(decayed_sum_is_zero(
            decayed_sum_advance((DecayedSum){DECAYED_SUM_MAX, DECAYED_SUM_MAX}, UINT64_MAX)));
}

static void parts_stay_within_their_whole(void **state)
{
    static const uint64_t weights[] = {256, 257, 1000, (1U << 24) - 1};

    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++) {
            if (!decayed_sum_within(nth(i), nth(j)))
                continue;
            assert_true(decayed_sum_ratio(nth(i), nth(j)) >= 0 &&
                        decayed_sum_ratio(nth(i), nth(j)) <= 1);
            for (size_t k = 0; k < N; k++)
                assert_true(decayed_sum_within(decayed_sum_add(nth(i), nth(k)),
                                               decayed_sum_add(nth(j), nth(k))));
            for (uint64_t a = 0; a < 3; a++)
                assert_true(decayed_sum_within(decayed_sum_advance(nth(i), a),
                                               decayed_sum_advance(nth(j), a)));
            for (size_t v = 0; v < ELEMENTSOF(weights); v++)
                for (size_t w = 0; w < ELEMENTSOF(weights); w++)
                    assert_true(decayed_sum_within(
                            decayed_sum_rescale(nth(i), weights[v], weights[w]),
                            decayed_sum_rescale(nth(j), weights[v], weights[w])));
        }
    assert_true(decayed_sum_ratio((DecayedSum){0, 0}, (DecayedSum){0, 0}) == 0);
    assert_true(decayed_sum_ratio((DecayedSum){5, 0}, (DecayedSum){0, 0}) == 0);
}

static void rescaling_keeps_proportions(void **state)
{
    assert_true(equal(decayed_sum_rescale((DecayedSum){1000, 0}, 256, 512), (DecayedSum){500, 0}));
    assert_true(equal(decayed_sum_rescale((DecayedSum){1000, 1U << DECAYED_SUM_SPAN}, 512, 256),
                      (DecayedSum){2002, 0}));
    assert_true(equal(decayed_sum_rescale((DecayedSum){0, 1000}, 256, 256), (DecayedSum){0, 0}));
    assert_true(equal(decayed_sum_rescale((DecayedSum){DECAYED_SUM_MAX, DECAYED_SUM_MAX},
                                          (1U << 24) - 1, 256),
                      (DecayedSum){DECAYED_SUM_MAX, 0}));
}

/* --- weighted ranges, compared with a plain array of sums --------------------------- */

#define WIDTH 24U

static void random_ranges(Random *r, WeightedRanges *ret, DecayedSum *table)
{
    *ret = (WeightedRanges){0};
    memset(table, 0, WIDTH * sizeof(DecayedSum));
    for (unsigned pieces = 1 + random_below(r, 4); pieces > 0; pieces--) {
        unsigned a = random_below(r, WIDTH), b = a + random_below(r, WIDTH - a) + 1;
        DecayedSum weight = {1 + random_below(r, 3), random_below(r, 2)};
        Range range = {a, b - a};
        const RangeSet set = {&range, 1, 1};
        WeightedRanges one = {0}, sum = {0};

        assert_int_equal(weighted_ranges_from_ranges(&set, weight, &one), 0);
        assert_int_equal(weighted_ranges_sum(ret, 0, &one, 0, &sum), 0);
        weighted_ranges_done(ret);
        weighted_ranges_done(&one);
        *ret = sum;
        for (unsigned i = a; i < b; i++)
            table[i] = decayed_sum_add(table[i], weight);
    }
}

static DecayedSum ranges_value(const WeightedRanges *s, uint64_t at)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->ranges[i].offset <= at && at < weighted_range_end(&s->ranges[i]))
            return s->ranges[i].weight;
    return (DecayedSum){0, 0};
}

static void check_canonical(const WeightedRanges *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const WeightedRange *x = &s->ranges[i];

        assert_true(x->length > 0 && !decayed_sum_is_zero(x->weight));
        if (i > 0) {
            assert_true(weighted_range_end(&x[-1]) <= x->offset);
            assert_false(weighted_range_end(&x[-1]) == x->offset && equal(x[-1].weight, x->weight));
        }
    }
}

static void weighted_ranges_add_like_arrays(void **state)
{
    Random r = {42};

    for (unsigned round = 0; round < 3000; round++) {
        DecayedSum a[WIDTH], b[WIDTH];
        WeightedRanges x, y, sum = {0}, mirrored = {0};
        uint64_t x_later = random_below(&r, 3), y_later = random_below(&r, 3);

        random_ranges(&r, &x, a);
        random_ranges(&r, &y, b);
        check_canonical(&x);
        assert_int_equal(weighted_ranges_sum(&x, x_later, &y, y_later, &sum), 0);
        assert_int_equal(weighted_ranges_sum(&y, y_later, &x, x_later, &mirrored), 0);
        check_canonical(&sum);
        assert_int_equal(sum.n, mirrored.n);
        for (size_t i = 0; i < sum.n; i++) {
            assert_int_equal(sum.ranges[i].offset, mirrored.ranges[i].offset);
            assert_int_equal(sum.ranges[i].length, mirrored.ranges[i].length);
        }
        for (unsigned i = 0; i < WIDTH; i++)
            assert_true(equal(ranges_value(&sum, i),
                              decayed_sum_add(decayed_sum_advance(a[i], x_later),
                                              decayed_sum_advance(b[i], y_later))));
        weighted_ranges_done(&x);
        weighted_ranges_done(&y);
        weighted_ranges_done(&sum);
        weighted_ranges_done(&mirrored);
    }
}

static void segments_are_appended_in_order(void **state)
{
    WeightedRanges s = {0};

    assert_int_equal(weighted_ranges_append(&s, (WeightedRange){4, 0, {1, 0}}), -EBADMSG);
    assert_int_equal(weighted_ranges_append(&s, (WeightedRange){4, UINT64_MAX - 3, {1, 0}}),
                     -EBADMSG);
    assert_int_equal(weighted_ranges_append(&s, (WeightedRange){4, 1, {0, 0}}), -EBADMSG);
    assert_int_equal(weighted_ranges_append(&s, (WeightedRange){4, UINT64_MAX - 4, {1, 0}}),
                     -EBADMSG);
    assert_int_equal(s.n, 0);
    assert_int_equal(weighted_ranges_append(&s, (WeightedRange){4, 2, {1, 0}}), 0);
    assert_int_equal(weighted_ranges_append(&s, (WeightedRange){5, 2, {2, 0}}), -EBADMSG);
    assert_int_equal(weighted_ranges_append(&s, (WeightedRange){6, 1, {2, 0}}), 0);
    weighted_ranges_done(&s);
    assert_int_equal(weighted_ranges_append(&s, (WeightedRange){4, 2, {1, 0}}), 0);
    assert_int_equal(weighted_ranges_append(&s, (WeightedRange){6, 1, {1, 0}}),
                     -EBADMSG); /* touching ranges of equal weight must be one */
    weighted_ranges_done(&s);
}

/* Returns the distance from x to its nearest number of four significant bits, of which there are
 * eight between two powers of two. */
static uint64_t distance_to_rounded(uint64_t x)
{
    uint64_t least = x;

    for (unsigned power = 0; power < 60; power++)
        for (uint64_t k = 8; k <= 15; k++) {
            uint64_t y = k << power;

            least = MIN(least, x > y ? x - y : y - x);
        }
    return least;
}

/* Checks a number, after a smaller one that was rounded to `before`. */
static void check_rounded(uint64_t x, uint64_t before)
{
    uint64_t y = decayed_sum_round_number(x);

    assert_true(y >= before && (y == 0) == (x == 0) && y <= DECAYED_SUM_MAX);
    assert_true(decayed_sum_round_number(y) == y);
    if (x < 16)
        assert_int_equal(y, x);
    else if (y < DECAYED_SUM_MAX)
        assert_true((x > y ? x - y : y - x) == distance_to_rounded(x));
}

static void rounding_finds_the_nearest_number_and_keeps_the_order(void **state)
{
    uint64_t before = 0;

    for (uint64_t x = 0; x < 5000; x++) {
        check_rounded(x, before);
        before = decayed_sum_round_number(x);
    }
    for (size_t i = 1; i < ELEMENTSOF(hostile); i++)
        check_rounded(hostile[i], decayed_sum_round_number(hostile[i - 1]));
    /* Equally near numbers: the larger one. */
    assert_int_equal(decayed_sum_round_number(17), 18);
    assert_int_equal(decayed_sum_round_number(248), 256);
    assert_true(equal(decayed_sum_round((DecayedSum){271, 272}), (DecayedSum){256, 288}));
}

static void rounded_ranges_that_touch_become_one(void **state)
{
    static const WeightedRange ranges[] = {
            {0, 2, {256, 0}}, {2, 3, {271, 0}}, {6, 1, {260, 0}}, {7, 1, {300, 0}}};
    WeightedRanges s = {0};

    for (size_t i = 0; i < ELEMENTSOF(ranges); i++)
        assert_int_equal(weighted_ranges_append(&s, ranges[i]), 0);
    weighted_ranges_round(&s);
    assert_int_equal(s.n, 3);
    assert_int_equal(s.ranges[0].offset, 0);
    assert_int_equal(s.ranges[0].length, 5);
    assert_int_equal(s.ranges[1].offset, 6);
    assert_int_equal(s.ranges[1].length, 1);
    assert_int_equal(s.ranges[1].weight.current, 256);
    assert_int_equal(s.ranges[2].weight.current, 288);
    weighted_ranges_done(&s);
}

/* Compares products that need more than 64 bits with arithmetic of 128 bits. */
static void wide_products_are_exact(void **state)
{
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 Wide;
    static const uint64_t weights[] = {256, 257, 362, 65535, 1U << 23, (1U << 24) - 1};

    /* The weight of a time can also be the sum of many weights. */
    for (size_t k = 0; k < N; k++) {
        DecayedSum f = nth(k);
        Wide x =
                ((Wide)f.current * f.previous + (1U << (DECAYED_SUM_BITS - 1))) >> DECAYED_SUM_BITS;

        assert_true(decayed_sum_of_time(f.current, f.previous) == MIN(x, (Wide)DECAYED_SUM_MAX));
    }
    for (size_t i = 0; i < ELEMENTSOF(weights); i++) {
        uint64_t to = weights[i];

        for (size_t k = 0; k < ELEMENTSOF(hostile); k++) {
            Wide x = ((Wide)hostile[k] * to + (1U << (DECAYED_SUM_BITS - 1))) >> DECAYED_SUM_BITS;

            assert_true(decayed_sum_of_time(hostile[k], to) == MIN(x, (Wide)DECAYED_SUM_MAX));
        }
        for (size_t j = 0; j < ELEMENTSOF(weights); j++)
            for (size_t k = 0; k < N; k++) {
                DecayedSum f = nth(k), sum = decayed_sum_rescale(f, to, weights[j]);
                Wide x = ((Wide)f.current << DECAYED_SUM_SPAN) + f.previous;

                x = (x * to / weights[j]) >> DECAYED_SUM_SPAN;
                assert_true(sum.current == MIN(x, (Wide)DECAYED_SUM_MAX) && sum.previous == 0);
            }
    }
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(weights_double_each_halflife),
            cmocka_unit_test(weights_never_fall_nor_leave_their_bounds),
            cmocka_unit_test(values_are_continuous_across_generations),
            cmocka_unit_test(adding_is_associative_and_commutative),
            cmocka_unit_test(advancing_commutes_with_adding),
            cmocka_unit_test(parts_stay_within_their_whole),
            cmocka_unit_test(rescaling_keeps_proportions),
            cmocka_unit_test(wide_products_are_exact),
            cmocka_unit_test(weighted_ranges_add_like_arrays),
            cmocka_unit_test(segments_are_appended_in_order),
            cmocka_unit_test(rounding_finds_the_nearest_number_and_keeps_the_order),
            cmocka_unit_test(rounded_ranges_that_touch_become_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
