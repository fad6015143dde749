/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests association rules and the hybrid with the examples of Rutt and Parthasarathy, figure 2,
 * right. */

#include "evaluate/association.c" // NOLINT(bugprone-suspicious-include)
#include "util/evaluate-util.h"

/* association_n_rules() returns the number of rules. association_lookup() gets the support and the
 * confidence of one rule and returns -ENOENT if there is no such rule. The items of `antecedent`
 * may be in any order. */
static size_t association_n_rules(const Predictor *p)
{
    return ((const Association *)p)->n_rules;
}

static int association_lookup(const Predictor *p, const uint32_t *antecedent, size_t n,
                              uint32_t consequent, double *ret_support, double *ret_confidence)
{
    const Association *a = (const Association *)p;
    uint32_t sorted[WINDOW_MAX];

    if (n < 1 || n > WINDOW_MAX)
        return -ENOENT;
    memcpy(sorted, antecedent, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), compare_uint32);
    for (size_t i = 0; i < a->n_rules; i++) {
        const Rule *rule = &a->rules[i];

        if (rule->n == n && rule->consequent == consequent &&
            memcmp(rule->antecedent, sorted, n * sizeof(*sorted)) == 0) {
            *ret_support = rule->support;
            *ret_confidence = rule->confidence;
            return 0;
        }
    }
    return -ENOENT;
}

static bool has_rule(const Predictor *p, const char *antecedent, char consequent, double *support,
                     double *confidence)
{
    uint32_t k[8];
    double s, c;

    key(antecedent, k);
    return association_lookup(p, k, strlen(antecedent), (uint32_t)(consequent - 'A'),
                              support ? support : &s, confidence ? confidence : &c) == 0;
}

/* Figure 2: A -> B, C, Z; BC -> A, Z, Y; ABC -> Z; BCAZ -> Y ("only a few rules are shown"). */
static void test_figure_2(void **state)
{
    _cleanup_predictor_ Predictor *p = make_predictor("association", NULL);
    double support, confidence;

    feed(p, "ABCAZY");
    assert_int_equal(association_mine(p), 0);
    assert_true(has_rule(p, "A", 'B', &support, &confidence));
    assert_near(support, 1);
    assert_near(confidence, 1);
    assert_true(has_rule(p, "A", 'C', NULL, NULL));
    assert_true(has_rule(p, "A", 'Z', NULL, NULL));
    assert_true(has_rule(p, "BC", 'A', NULL, NULL));
    assert_true(has_rule(p, "BC", 'Z', NULL, NULL));
    assert_true(has_rule(p, "BC", 'Y', &support, &confidence));
    assert_near(support, 0.5); /* in one of the two windows */
    assert_near(confidence, 0.5);
    assert_true(has_rule(p, "ABC", 'Z', NULL, NULL));
    assert_true(has_rule(p, "ABCZ", 'Y', NULL, NULL));
}

/* A rule is used if its support and its confidence reach their thresholds. */
static void test_thresholds(void **state)
{
    PredictorParameters par = defaults("association");
    _cleanup_predictor_ Predictor *p = NULL;

    par.association_confidence = 0.51;
    p = make_predictor("association", &par);
    feed(p, "ABCAZY");
    assert_int_equal(association_mine(p), 0);
    assert_false(has_rule(p, "BC", 'Y', NULL, NULL));
    assert_true(has_rule(p, "Y", 'B', NULL, NULL)); /* B is in the only window of Y */

    predictor_free(TAKE_PTR(p));
    par.association_support = 0.5; /* exactly the support of that rule */
    p = make_predictor("association", &par);
    feed(p, "ABCAZY");
    assert_int_equal(association_mine(p), 0);
    assert_true(has_rule(p, "Y", 'B', NULL, NULL));

    predictor_free(TAKE_PTR(p));
    par.association_confidence = 0.5;
    par.association_support = 0.51;
    p = make_predictor("association", &par);
    feed(p, "ABCAZY");
    assert_int_equal(association_mine(p), 0);
    assert_false(has_rule(p, "Y", 'B', NULL, NULL));
    assert_true(has_rule(p, "BC", 'Z', NULL, NULL));
}

/* Compares the fast miner with a simple count over the windows of a longer sequence. */
static void test_against_counting(void **state)
{
    static const char text[] = "ABCABDABCEFABCABDGHABCIJKABLMNAOPQABC";
    PredictorParameters par = defaults("association");
    _cleanup_predictor_ Predictor *p = NULL;
    size_t n_windows = strlen(text) - 4;

    par.association_support = 0;
    par.association_confidence = 0;
    p = make_predictor("association", &par);
    feed(p, text);
    assert_int_equal(association_mine(p), 0);
    for (char a = 'A'; a <= 'Q'; a++)
        for (char b = 'A'; b <= 'Q'; b++) {
            size_t with_a = 0, with_both = 0;
            double support = NAN, confidence = NAN;

            for (size_t i = 0; i < n_windows; i++) {
                bool has_a = memchr(text + i, a, 5), has_b = memchr(text + i, b, 5);

                with_a += has_a;
                with_both += has_a && has_b;
            }
            if (a == b)
                continue;
            assert_int_equal(has_rule(p, (char[]){a, 0}, b, &support, &confidence), with_both > 0);
            if (with_both == 0)
                continue;
            assert_near(support, (double)with_both / (double)n_windows);
            assert_near(confidence, (double)with_both / (double)with_a);
        }
}

static void test_predict(void **state)
{
    PredictorParameters par = defaults("association");
    _cleanup_predictor_ Predictor *p = NULL;

    p = make_predictor("association", &par);
    feed(p, "ABCAZY");
    assert_int_equal(association_mine(p), 0);
    predictor_end(p, 0);
    feed(p, "CB"); /* in any order */
    assert_near(guess_of(p, 'A'), 1);
    assert_near(guess_of(p, 'Z'), 1);
    assert_near(guess_of(p, 'Y'), 0.5);

    /* The number of guesses is limited, and the best supported ones come first. Y has half the
     * support of the others. */
    predictor_free(TAKE_PTR(p));
    par.association_guesses = 4;
    p = make_predictor("association", &par);
    feed(p, "ABCAZY");
    assert_int_equal(association_mine(p), 0);
    predictor_end(p, 0);
    feed(p, "CB");
    assert_string_equal(guessed(p), "ABCZ");
}

/* A session shorter than the window is one transaction; sessions do not mix. */
static void test_sessions(void **state)
{
    _cleanup_predictor_ Predictor *p = make_predictor("association", NULL);

    feed(p, "AB");
    predictor_end(p, 0);
    feed(p, "CD");
    predictor_end(p, 0);
    assert_int_equal(association_mine(p), 0);
    assert_true(has_rule(p, "A", 'B', NULL, NULL));
    assert_false(has_rule(p, "B", 'C', NULL, NULL));
    assert_int_equal(association_n_rules(p), 4);
}

/* The hybrid predicts the items of both its parts, each with the higher of the two probabilities.
 */
static void test_hybrid(void **state)
{
    PredictorParameters par = defaults("hybrid");
    _cleanup_predictor_ Predictor *h = NULL, *a = NULL, *n = NULL;
    static const char text[] =
            "ABCDEFGHABCDEFGHABCDEFGHABCDEFGHABXDEFGHABCDEFGHABCDEFGHABCDEFGHABCD";

    h = make_predictor("hybrid", &par);
    a = make_predictor("association", &par);
    n = make_predictor("1-5-gram+", &par);
    for (const char *c = text; *c; c++) {
        char one[] = {*c, 0};
        double x, y;

        feed(h, one);
        feed(a, one);
        feed(n, one);
        for (char q = 'A'; q <= 'X'; q++) {
            x = guess_of(a, q);
            y = guess_of(n, q);
            assert_near(guess_of(h, q), MAX(x, y));
        }
    }
    assert_true(association_n_rules(a) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_figure_2),         cmocka_unit_test(test_thresholds),
            cmocka_unit_test(test_against_counting), cmocka_unit_test(test_predict),
            cmocka_unit_test(test_sessions),         cmocka_unit_test(test_hybrid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
