/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests how metadata that the sweep passes joins the ranges of a plan. */

#include "plan/passing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void insert(RangeSet *s, uint64_t offset, uint64_t length)
{
    assert_int_equal(range_set_insert(s, offset, length), 0);
}

static void assert_range(const PackContentMetadata *m, uint64_t offset, uint64_t end)
{
    assert_int_equal(m->offset, offset);
    assert_int_equal(m->offset + m->length, end);
}

static void near_ranges_join_and_far_ones_do_not(void **state)
{
    _cleanup_range_set_ RangeSet passing = {0};
    PackContentMetadata m[] = {{.offset = 1000, .length = 10}, {.offset = 2000, .length = 10}};
    uint64_t budget = 1000;

    (void)state;
    insert(&passing, 900, 5);  /* too far */
    insert(&passing, 980, 10); /* near the first range, from below */
    insert(&passing, 1015, 5); /* near it from above, and far from the second one */
    insert(&passing, 1500, 5);
    insert(&passing, 2020, 1); /* after the last range */
    assert_int_equal(passing_join(&passing, m, 2, 20, &budget), 10 + 5 + 10);
    assert_range(&m[0], 980, 1020);
    assert_range(&m[1], 2000, 2021);
    assert_int_equal(budget, 1000 - 20 - 10 - 11);
}

/* Each neighbour brings the next one into reach. */
static void a_row_of_neighbours_joins(void **state)
{
    _cleanup_range_set_ RangeSet passing = {0};
    PackContentMetadata m[] = {{.offset = 1000, .length = 10}};
    uint64_t budget = 1000;

    (void)state;
    for (uint64_t at = 900; at < 1100; at += 10)
        insert(&passing, at, 1);
    assert_int_equal(passing_join(&passing, m, 1, 10, &budget), 10 * 9 + 8 * 9);
    assert_range(&m[0], 900, 1091);
}

static void a_part_inside_a_range_adds_nothing(void **state)
{
    _cleanup_range_set_ RangeSet passing = {0};
    PackContentMetadata m[] = {{.offset = 1000, .length = 100}, {.offset = 1110, .length = 10}};
    uint64_t budget = 1000;

    (void)state;
    insert(&passing, 1000, 5);
    insert(&passing, 1050, 5);
    insert(&passing, 1095, 10); /* it continues after the range */
    assert_int_equal(passing_join(&passing, m, 2, 50, &budget), 0);
    assert_range(&m[0], 1000, 1105);
    assert_range(&m[1], 1110, 1120);
    assert_int_equal(budget, 995);
}

static void what_exceeds_the_budget_is_left_out(void **state)
{
    _cleanup_range_set_ RangeSet passing = {0};
    PackContentMetadata m[] = {{.offset = 1000, .length = 10}};
    uint64_t budget = 12;

    (void)state;
    insert(&passing, 980, 10);
    insert(&passing, 1015, 5);
    assert_int_equal(passing_join(&passing, m, 1, 100, &budget), 5);
    assert_range(&m[0], 1000, 1020);
    assert_int_equal(budget, 2);
    assert_int_equal(passing_join(&passing, m, 0, 100, &budget), 0);
}

/* Whatever the input: the ranges stay sorted and disjoint, keep what they had, and gain only bytes
 * that are paid for. */
static void ranges_stay_sorted_and_disjoint(void **state)
{
    (void)state;
    srand(1);
    for (int round = 0; round < 2000; round++) {
        _cleanup_range_set_ RangeSet passing = {0};
        PackContentMetadata m[8], before[8];
        size_t n = (size_t)rand() % 9;
        uint64_t at = 0, budget = (uint64_t)rand() % 200, spent = budget, added = 0;

        for (size_t i = 0; i < n; i++) {
            at += (uint64_t)rand() % 30;
            m[i] = (PackContentMetadata){.offset = at, .length = 1 + (uint64_t)rand() % 20};
            at += m[i].length;
            before[i] = m[i];
        }
        for (int i = rand() % 10; i > 0; i--)
            insert(&passing, (uint64_t)rand() % 300, 1 + (uint64_t)rand() % 40);
        (void)passing_join(&passing, m, n, (uint64_t)rand() % 30, &budget);
        for (size_t i = 0; i < n; i++) {
            assert_true(m[i].offset <= before[i].offset);
            assert_true(m[i].offset + m[i].length >= before[i].offset + before[i].length);
            assert_true(i == 0 || m[i - 1].offset + m[i - 1].length <= m[i].offset);
            added += m[i].length - before[i].length;
        }
        assert_int_equal(spent - budget, added);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(near_ranges_join_and_far_ones_do_not),
            cmocka_unit_test(a_row_of_neighbours_joins),
            cmocka_unit_test(a_part_inside_a_range_adds_nothing),
            cmocka_unit_test(what_exceeds_the_budget_is_left_out),
            cmocka_unit_test(ranges_stay_sorted_and_disjoint),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
