/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests all sets of ranges over 0..N-1 for small N. Each set is also a bit mask, and the result of
 * the fast algorithm is compared with the result of a simple one on masks. */

#include "base/ranges.h"
#include "util/range-util.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define N 7U

static uint32_t mask_of(const RangeSet *s)
{
    uint32_t m = 0;

    assert_true(range_set_valid(s));
    for (size_t i = 0; i < s->n; i++)
        for (uint64_t b = s->ranges[i].offset; b < range_end(&s->ranges[i]); b++)
            m |= 1U << b;
    return m;
}

static void set_of(uint32_t mask, RangeSet *ret)
{
    *ret = (RangeSet){0};
    for (unsigned b = 0; b < N; b++)
        if (mask & (1U << b))
            assert_int_equal(range_set_insert_span(ret, b, b + 1), 0);
}

static void add_every_range_to_every_set(void **state)
{
    for (uint32_t m = 0; m < 1U << N; m++)
        for (unsigned a = 0; a <= N; a++)
            for (unsigned b = a; b <= N; b++) {
                RangeSet s;
                uint32_t want = m, own = 0;

                set_of(m, &s);
                assert_int_equal(mask_of(&s), m);
                for (unsigned i = a; i < b; i++)
                    own |= 1U << i;
                want |= own;
                assert_int_equal(range_set_covered(&s, (Range){a, b - a}),
                                 __builtin_popcount(m & own));
                assert_int_equal(range_set_insert_span(&s, a, b), 0);
                assert_int_equal(mask_of(&s), want);
                assert_int_equal(range_set_total(&s), __builtin_popcount(want));
                for (unsigned i = 0; i <= N; i++)
                    assert_int_equal(range_set_contains(&s, i), (want >> i) & 1);
                range_set_done(&s);
            }
}

static void algebra_of_every_pair(void **state)
{
    for (uint32_t x = 0; x < 1U << N; x++)
        for (uint32_t y = 0; y < 1U << N; y++) {
            RangeSet a, b, u, i, d;

            set_of(x, &a);
            set_of(y, &b);
            assert_int_equal(range_set_union(&a, &b, &u), 0);
            assert_int_equal(range_set_intersect(&a, &b, &i), 0);
            assert_int_equal(range_set_subtract(&a, &b, &d), 0);
            assert_int_equal(mask_of(&u), x | y);
            assert_int_equal(mask_of(&i), x & y);
            assert_int_equal(mask_of(&d), x & ~y);
            assert_int_equal(range_set_equal(&a, &b), x == y);
            assert_int_equal(range_set_unite(&a, &b), 0);
            assert_true(range_set_equal(&a, &u));
            range_set_done(&a);
            range_set_done(&b);
            range_set_done(&u);
            range_set_done(&i);
            range_set_done(&d);
        }
}

static void gaps_up_to_the_limit_close(void **state)
{
    for (uint32_t m = 0; m < 1U << N; m++)
        for (unsigned gap = 0; gap < N; gap++) {
            RangeSet s;
            uint32_t want = m;

            set_of(m, &s);
            for (unsigned a = 0; a < N; a++)
                for (unsigned b = a + 1; b < N && b - a - 1 <= gap; b++)
                    if ((m >> a & 1) && (m >> b & 1))
                        for (unsigned i = a; i < b; i++)
                            want |= 1U << i;
            range_set_merge_gaps(&s, gap);
            assert_int_equal(mask_of(&s), want);
            range_set_done(&s);
        }
}

static void limits_of_the_number_type(void **state)
{
    _cleanup_range_set_ RangeSet s = {0};

    assert_int_equal(range_set_insert(&s, 2, UINT64_MAX - 1), -EINVAL);
    assert_int_equal(range_set_insert(&s, 5, 0), 0);
    assert_int_equal(s.n, 0);
    assert_int_equal(range_set_insert_span(&s, 0, UINT64_MAX), 0);
    assert_true(range_set_contains(&s, UINT64_MAX - 1));
    assert_false(range_set_contains(&s, UINT64_MAX));
    assert_int_equal(range_set_total(&s), UINT64_MAX);
    assert_int_equal(range_set_insert_span(&s, 3, 4), 0);
    assert_int_equal(s.n, 1);
}

static void validity_is_checked(void **state)
{
    Range touching[] = {{1, 1}, {2, 1}}, empty[] = {{1, 0}}, unsorted[] = {{5, 1}, {1, 1}},
          beyond[] = {{2, UINT64_MAX - 1}};

    assert_false(range_set_valid(&(RangeSet){touching, 2, 2}));
    assert_false(range_set_valid(&(RangeSet){empty, 1, 1}));
    assert_false(range_set_valid(&(RangeSet){unsorted, 2, 2}));
    assert_false(range_set_valid(&(RangeSet){beyond, 1, 1}));
    assert_true(range_set_valid(&(RangeSet){0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(add_every_range_to_every_set),
            cmocka_unit_test(algebra_of_every_pair),
            cmocka_unit_test(gaps_up_to_the_limit_close),
            cmocka_unit_test(limits_of_the_number_type),
            cmocka_unit_test(validity_is_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
