/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests session share, the best j of k, and access trees with sequences counted by hand. */

#include "util/evaluate-util.h"

static void observe(Predictor *p, char letter, PredictorEventKind kind)
{
    assert_int_equal(
            predictor_observe(p, &(PredictorEvent){.item = (uint32_t)(letter - 'A'), .kind = kind}),
            0);
}

static void test_session_share(void **state)
{
    _cleanup_predictor_ Predictor *p = make_predictor("session-share", NULL);

    feed(p, "AB");
    assert_int_equal(predictor_end(p, 0), 0);
    feed(p, "AA");
    assert_int_equal(predictor_begin(p, 0, 0), 0);
    assert_near(guess_of(p, 'A'), 2.5 / 3);
    assert_near(guess_of(p, 'B'), 1.5 / 3);
    /* A user without a session gets the share of everybody's sessions. */
    assert_int_equal(predictor_begin(p, 0, 1), 0);
    assert_near(guess_of(p, 'B'), 1.5 / 4);
}

static void test_best_j_of_k(void **state)
{
    PredictorParameters par = defaults("best-j-of-k");
    _cleanup_predictor_ Predictor *p = make_predictor("best-j-of-k", &par);

    feed(p, "ABABAC");
    assert_string_equal(guessed(p), "");
    assert_int_equal(predictor_end(p, 0), 0);
    feed(p, "A"); /* followed by B, B and C */
    assert_string_equal(guessed(p), "B");
    assert_near(guess_of(p, 'B'), 2.0 / par.popularity_k);
    feed(p, "CACA"); /* the last four are B, C, C, C */
    assert_string_equal(guessed(p), "C");
    assert_near(guess_of(p, 'C'), 3.0 / par.popularity_k);
}

/* While E runs, it accesses A, then its child C runs with the accesses B and D, then E accesses F.
 */
static void test_access_trees(void **state)
{
    _cleanup_predictor_ Predictor *p = make_predictor("access-trees", NULL);

    observe(p, 'E', PREDICTOR_START);
    feed(p, "A");
    observe(p, 'C', PREDICTOR_START);
    feed(p, "BD");
    observe(p, 'C', PREDICTOR_EXIT);
    feed(p, "F");
    observe(p, 'E', PREDICTOR_EXIT);
    assert_int_equal(predictor_begin(p, 0, 0), 0);
    assert_string_equal(guessed(p), "ABCDEF");
    observe(p, 'E', PREDICTOR_START);
    assert_string_equal(guessed(p), "ABCDF");
    assert_near(guess_of(p, 'B'), 0.5);
    feed(p, "A");
    assert_string_equal(guessed(p), "BCDF");
    assert_near(guess_of(p, 'D'), 1.5 / 2);
    observe(p, 'C', PREDICTOR_START);
    assert_string_equal(guessed(p), "BDF");
    assert_near(guess_of(p, 'B'), 0.5);
    assert_near(guess_of(p, 'F'), 2.5 / 3);
    feed(p, "BD");
    observe(p, 'C', PREDICTOR_EXIT);
    assert_string_equal(guessed(p), "F");
    feed(p, "G"); /* is not in the list */
    assert_near(guess_of(p, 'F'), 2.5 / 4);
    observe(p, 'E', PREDICTOR_EXIT);
    /* There are two lists of E now: A C F and A C G. X Y becomes the third and newest. At the start
     * of E the newest list is predicted; after A, the newest list with A. */
    observe(p, 'E', PREDICTOR_START);
    feed(p, "XY");
    observe(p, 'E', PREDICTOR_EXIT);
    observe(p, 'E', PREDICTOR_START);
    assert_string_equal(guessed(p), "XY");
    feed(p, "A");
    assert_string_equal(guessed(p), "BCDG");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_session_share),
            cmocka_unit_test(test_best_j_of_k),
            cmocka_unit_test(test_access_trees),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
