/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "predict/object-scores.h"
#include "predict/selection.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
/* needs the headers above */
#include <cmocka.h>

#define MB   1000000U
#define SEEK 1000000U

static SelectionCandidate candidate(uint64_t bytes, double use, bool present)
{
    return (SelectionCandidate){
            .bytes = bytes,
            .use = use,
            .worth = object_worth(bytes, SEEK),
            .present = present,
    };
}

static void choose(SelectionReads *reads, double minimum_use, double maximum_waste, uint64_t budget,
                   SelectionCandidate *c, size_t n)
{
    Selection s = {
            .parameters = {.minimum_use = minimum_use, .maximum_waste = maximum_waste},
            .budget_bytes = budget,
            .reads = reads,
    };
    uint64_t sum = 0;

    assert_int_equal(selection_choose(&s, c, n), 0);
    for (size_t i = 0; i < n; i++)
        sum += c[i].verdict == SELECTION_SELECTED ? c[i].bytes : 0;
    assert_int_equal(sum, s.selected_bytes);
    assert_true(s.selected_bytes <= budget);
}

static void test_without_bound_the_order_decides(void **state)
{
    SelectionReads reads = {0};
    SelectionCandidate c[] = {
            candidate(6 * MB, 0.5, false), candidate(6 * MB, 1, false),
            candidate(3 * MB, 0.1, false), candidate(2 * MB, 0.3, true),
            candidate(2 * MB, 0.3, true),
    };

    choose(&reads, 0.2, 1, 10 * MB, c, ELEMENTSOF(c));
    assert_int_equal(c[0].verdict, SELECTION_SELECTED);
    assert_int_equal(c[1].verdict, SELECTION_BEYOND);
    assert_int_equal(c[2].verdict, SELECTION_UNLIKELY);
    assert_int_equal(c[3].verdict, SELECTION_SELECTED);
    assert_int_equal(c[4].verdict, SELECTION_SELECTED);
    assert_int_equal(reads.bytes, 6 * MB);
    assert_true(fabs(reads.expected_waste - 3 * MB) < 1);
}

/* The likely object comes last, but it makes room for the unlikely ones. */
static void test_bound_spends_its_room_where_most_is_saved(void **state)
{
    SelectionReads reads = {0};
    SelectionCandidate c[] = {
            candidate(MB, 0.3, false),
            candidate(MB, 0.8, false),
            candidate(8 * MB, 1, false),
    };

    choose(&reads, 0.2, 0.08, 100 * MB, c, ELEMENTSOF(c));
    assert_int_equal(c[2].verdict, SELECTION_SELECTED);
    assert_int_equal(c[1].verdict, SELECTION_SELECTED);
    assert_int_equal(c[0].verdict, SELECTION_WASTEFUL);
}

/* The bound must not displace what fits into the budget by something that scores lower. */
static void test_bound_keeps_the_order_of_the_budget(void **state)
{
    SelectionReads reads = {0};
    SelectionCandidate c[] = {
            candidate(5 * MB, 0.9, false),
            candidate(5 * MB, 1, false),
    };

    choose(&reads, 0.2, 0.15, 5 * MB, c, ELEMENTSOF(c));
    assert_int_equal(c[0].verdict, SELECTION_SELECTED);
    assert_int_equal(c[1].verdict, SELECTION_BEYOND);
    /* What the bound refuses leaves its place in the budget to the next one. */
    c[0].use = 0.5;
    reads = (SelectionReads){0};
    choose(&reads, 0.2, 0.15, 5 * MB, c, ELEMENTSOF(c));
    assert_int_equal(c[0].verdict, SELECTION_WASTEFUL);
    assert_int_equal(c[1].verdict, SELECTION_SELECTED);
}

/* What is read already costs nothing, however unlikely its use has become. */
static void test_what_is_read_stays(void **state)
{
    SelectionReads reads = {.bytes = 10 * MB, .expected_waste = 7 * MB};
    SelectionCandidate c[] = {
            candidate(2 * MB, 0.99, false),
            candidate(10 * MB, 0.3, true),
    };

    choose(&reads, 0.2, 0.15, 20 * MB, c, ELEMENTSOF(c));
    assert_int_equal(c[0].verdict, SELECTION_WASTEFUL);
    assert_int_equal(c[1].verdict, SELECTION_SELECTED);
    assert_int_equal(reads.bytes, 10 * MB);
}

static void test_cancelled_reads_do_not_count(void **state)
{
    SelectionReads reads = {0};
    SelectionCandidate c = candidate(MB, 0.9, false);

    choose(&reads, 0.2, 0.15, MB, &c, 1);
    assert_int_equal(c.verdict, SELECTION_SELECTED);
    selection_cancel(&reads, &c);
    assert_int_equal(reads.bytes, 0);
    assert_true(reads.expected_waste == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_without_bound_the_order_decides),
            cmocka_unit_test(test_bound_spends_its_room_where_most_is_saved),
            cmocka_unit_test(test_bound_keeps_the_order_of_the_budget),
            cmocka_unit_test(test_what_is_read_stays),
            cmocka_unit_test(test_cancelled_reads_do_not_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
