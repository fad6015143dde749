/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the probability graph of Griffioen and Appleton. */

#include "evaluate/graph.c" // NOLINT(bugprone-suspicious-include)
#include "util/evaluate-util.h"

/* Gets the number of arcs from `a` to `b`, and of all arcs out of `a`, as the paper counts them. */
static void graph_lookup(const Predictor *p, uint32_t a, uint32_t b, uint64_t *ret_arcs,
                         uint64_t *ret_out)
{
    const Graph *g = (const Graph *)p;
    const Node *node = a < g->allocated ? &g->nodes[a] : NULL;
    uint32_t at = node ? position(node, b) : 0;

    *ret_arcs = node && at < node->n && node->arcs[at].to == b ? node->arcs[at].n_arcs : 0;
    *ret_out = node ? node->out : 0;
}

static uint64_t arcs(const Predictor *p, char a, char b, uint64_t *out)
{
    uint64_t n, ignored;

    graph_lookup(p, (uint32_t)(a - 'A'), (uint32_t)(b - 'A'), &n, out ? out : &ignored);
    return n;
}

/* Section 5: each open within the lookahead makes an arc. With a lookahead of one, only the next
 * open does. */
static void test_arcs(void **state)
{
    PredictorParameters par = defaults("graph");
    _cleanup_predictor_ Predictor *one = make_predictor("graph", &par), *two = NULL;
    uint64_t out;

    feed(one, "ABCAB");
    assert_int_equal(arcs(one, 'A', 'B', &out), 2);
    assert_int_equal(out, 2);
    assert_int_equal(arcs(one, 'A', 'C', NULL), 0);
    assert_int_equal(arcs(one, 'B', 'C', NULL), 1);

    par.graph_lookahead = 2;
    two = make_predictor("graph", &par);
    feed(two, "ABCAB");
    assert_int_equal(arcs(two, 'A', 'B', &out), 2);
    assert_int_equal(out, 3);
    assert_int_equal(arcs(two, 'A', 'C', NULL), 1);
    assert_int_equal(arcs(two, 'C', 'B', NULL), 1);
}

/* An item is predicted if its chance reaches the minimum chance: two of three reach 0.65, three of
 * five do not. */
static void test_minimum_chance(void **state)
{
    _cleanup_predictor_ Predictor *p = make_predictor("graph", NULL);

    feed(p, "ABABACA");
    assert_near(guess_of(p, 'B'), 2.0 / 3);
    assert_near(guess_of(p, 'C'), 0);
    feed(p, "CABA");
    assert_near(guess_of(p, 'B'), 0); /* 3 / 5 */
}

/* For a lookahead of one, the paper's formula and the corrected formula give the same chance. */
static void test_lookahead_one(void **state)
{
    PredictorParameters par = defaults("graph");
    _cleanup_predictor_ Predictor *mended = NULL, *letter = NULL;

    par.graph_minimum_chance = 0;
    mended = make_predictor("graph", &par);
    par.graph_letter = true;
    letter = make_predictor("graph", &par);
    for (const char *c = "ABCABDAABBCADCBABCDDDABACBABDC"; *c; c++) {
        feed(mended, (char[]){*c, 0});
        feed(letter, (char[]){*c, 0});
        for (char q = 'A'; q <= 'D'; q++)
            assert_near(guess_of(mended, q), guess_of(letter, q));
    }
}

/* B always follows A within three opens. By the paper's formula the chance of B is nevertheless
 * only a third. By the corrected formula B is certain. */
static void test_longer_lookahead(void **state)
{
    PredictorParameters par = defaults("graph");
    _cleanup_predictor_ Predictor *mended = NULL, *letter = NULL;

    par.graph_lookahead = 3;
    mended = make_predictor("graph", &par);
    par.graph_letter = true;
    letter = make_predictor("graph", &par);
    for (const char *c = "ABXYZABWVUABTSRA"; *c; c++) {
        feed(mended, (char[]){*c, 0});
        feed(letter, (char[]){*c, 0});
    }
    assert_near(guess_of(mended, 'B'), 1);
    assert_near(guess_of(letter, 'B'), 1.0 / 3); /* above its minimum, 0.65 / 3 */
    assert_string_equal(guessed(mended), "B");
}

/* If B is opened twice within the lookahead of A, there are two arcs, but B has followed A only
 * once.
 */
static void test_repeated(void **state)
{
    PredictorParameters par = defaults("graph");
    _cleanup_predictor_ Predictor *p = NULL;
    uint64_t out;

    par.graph_lookahead = 4;
    par.graph_minimum_chance = 0.5;
    p = make_predictor("graph", &par);
    feed(p, "ABBCDEA");
    assert_int_equal(arcs(p, 'A', 'B', &out), 2);
    assert_int_equal(out, 4);
    assert_near(guess_of(p, 'B'), 1);
    feed(p, "XYZWA"); /* no B came after the second open of A */
    assert_near(guess_of(p, 'B'), 0.5);
}

/* The number of arcs of a node stays bounded, and frequent ones survive the aging. */
static void test_bounded(void **state)
{
    _cleanup_predictor_ Predictor *p = make_predictor("graph", NULL);

    for (uint32_t i = 0; i < 5000; i++) {
        feed(p, "AB");
        feed(p, "AB");
        feed(p, "A");
        assert_int_equal(
                predictor_observe(p, &(PredictorEvent){.item = 100 + i, .kind = PREDICTOR_ACCESS}),
                0);
    }
    feed(p, "A");
    assert_true(guess_of(p, 'B') > 0.6);
    assert_true(predictor_size(p) < 400000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_arcs),          cmocka_unit_test(test_minimum_chance),
            cmocka_unit_test(test_lookahead_one), cmocka_unit_test(test_longer_lookahead),
            cmocka_unit_test(test_repeated),      cmocka_unit_test(test_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
