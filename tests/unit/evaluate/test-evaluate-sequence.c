/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests naive frequency, last successor and n-grams with the examples of Rutt and Parthasarathy,
 * figure 2. */

#include "evaluate/ngram.c" // NOLINT(bugprone-suspicious-include)
#include "util/evaluate-util.h"

/* Finds the stored successors of the n items in `key`, whose oldest item comes first. Returns the
 * number of successors, and points *ret at them; *ret is valid until the next observation. `p` must
 * be one of the n-gram predictors. */
static size_t ngram_lookup(const Predictor *p, const uint32_t *key, size_t n, const uint32_t **ret)
{
    const Ngram *g = (const Ngram *)p;
    const Gram *e;

    if (n < 1 || n > g->p)
        return 0;
    e = lookup(g, key, (unsigned)n);
    if (!e)
        return 0;
    *ret = e->data + n;
    return g->s;
}

static void assert_gram(const Predictor *p, const char *predecessors, const char *successors)
{
    uint32_t k[8], v[16];
    const uint32_t *found;
    size_t n = strlen(successors);

    key(predecessors, k);
    key(successors, v);
    assert_int_equal(ngram_lookup(p, k, strlen(predecessors), &found), n);
    assert_memory_equal(found, v, n * sizeof(*v));
}

static void assert_no_gram(const Predictor *p, const char *predecessors)
{
    uint32_t k[8];
    const uint32_t *found;

    key(predecessors, k);
    assert_int_equal(ngram_lookup(p, k, strlen(predecessors), &found), 0);
}

/* Figure 2, left: the tables of a 2-3-gram+ for A B C A Z Y, with exactly these rows. */
static void test_figure_2(void **state)
{
    PredictorParameters par = defaults("1-5-gram+");
    _cleanup_predictor_ Predictor *p = NULL;

    par.ngram_predecessors = 2;
    par.ngram_successors = 3;
    p = make_predictor("1-5-gram+", &par);
    feed(p, "ABCAZY");
    assert_gram(p, "AB", "CAZ");
    assert_gram(p, "BC", "AZY");
    assert_gram(p, "A", "BCA");
    assert_gram(p, "B", "CAZ");
    assert_gram(p, "C", "AZY");
    assert_no_gram(p, "CA");
    assert_no_gram(p, "AZ");
    assert_no_gram(p, "Z");
    assert_no_gram(p, "Y");
    /* "If the input BC was given, the output would be AZY." */
    assert_int_equal(predictor_end(p, 0), 0);
    feed(p, "BC");
    assert_string_equal(guessed(p), "AYZ");
}

/* Checks that the predictor falls back from the longer order to the shorter. */
static void test_fall_back(void **state)
{
    _cleanup_predictor_ Predictor *p = make_predictor("2-gram+", NULL);

    feed(p, "ABCXBD");
    predictor_end(p, 0);
    feed(p, "AB"); /* C followed AB, although D was the last to follow B */
    assert_string_equal(guessed(p), "C");
    predictor_end(p, 0);
    feed(p, "QB"); /* QB was never seen, so the guess is the successor of B */
    assert_string_equal(guessed(p), "D");
}

static void test_last_successor(void **state)
{
    _cleanup_predictor_ Predictor *p = make_predictor("last-successor", NULL);

    feed(p, "ABA");
    assert_string_equal(guessed(p), "B");
    feed(p, "CA");
    assert_string_equal(guessed(p), "C"); /* the last one only */
    feed(p, "Q");
    assert_string_equal(guessed(p), "");
}

/* The end of a session is no successor: nothing is learned across it. */
static void test_session_boundary(void **state)
{
    _cleanup_predictor_ Predictor *p = make_predictor("last-successor", NULL);

    feed(p, "A");
    predictor_end(p, 0);
    feed(p, "B");
    assert_no_gram(p, "A");
}

/* Our addition: the probability of a guess is how often guesses of its kind came true. */
static void test_ngram_probability(void **state)
{
    _cleanup_predictor_ Predictor *p = make_predictor("last-successor", NULL);

    feed(p, "AB");
    feed(p, "A"); /* guesses B; no guess has an outcome yet */
    assert_near(guess_of(p, 'B'), 0.5);
    feed(p, "B"); /* right: 1 of 1 */
    assert_near(guess_of(p, 'A'), 2.0 / 3);
    feed(p, "C"); /* A was guessed, wrong: 1 of 2 */
    feed(p, "A");
    assert_near(guess_of(p, 'B'), 2.0 / 4);
}

/* The probability of an application that does not run is its share of all starts (thesis 6.1.1). */
static void test_naive(void **state)
{
    _cleanup_predictor_ Predictor *p = make_predictor("naive", NULL);
    PredictorEvent e = {.kind = PREDICTOR_START};

    feed(p, "AAAB");
    assert_near(guess_of(p, 'A'), 0.75);
    assert_near(guess_of(p, 'B'), 0.25);
    assert_near(guess_of(p, 'C'), 0);
    assert_int_equal(predictor_observe(p, &e), 0); /* A starts */
    assert_near(guess_of(p, 'A'), 0);
    assert_near(guess_of(p, 'B'), 0.2);
    e.kind = PREDICTOR_EXIT;
    assert_int_equal(predictor_observe(p, &e), 0);
    assert_near(guess_of(p, 'A'), 0.8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_figure_2),          cmocka_unit_test(test_fall_back),
            cmocka_unit_test(test_last_successor),    cmocka_unit_test(test_session_boundary),
            cmocka_unit_test(test_ngram_probability), cmocka_unit_test(test_naive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
