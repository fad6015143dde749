/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the predictor of the thesis (chapters 3 and 4). Compares the calibrated probabilities of
 * the mixture with those of the product over all chains, as the thesis computes it. */

#include "evaluate/preload.c" // NOLINT(bugprone-suspicious-include)
#include "evaluate/random.h"
#include "util/evaluate-util.h"

/* Returns the chain of two items, or NULL if there is none. *ret_swapped is true if b, not a, is
 * the lower bit of the chain's state. */
static const PreloadChain *preload_chain(const Predictor *p, uint32_t a, uint32_t b,
                                         bool *ret_swapped)
{
    const Preload *l = (const Preload *)p;
    uint32_t x, y;

    if (a == b || a >= l->index_allocated || b >= l->index_allocated)
        return NULL;
    x = l->index[a];
    y = l->index[b];
    if (x == PREDICTOR_NONE || y == PREDICTOR_NONE)
        return NULL;
    *ret_swapped = x < y;
    return &l->chains[chain_at(x, y)];
}

#define S USEC_PER_SEC

static void event(Predictor *p, unsigned at_sec, char item, PredictorEventKind kind)
{
    assert_int_equal(predictor_observe(p, &(PredictorEvent){.at = at_sec * S,
                                                            .item = (uint32_t)(item - 'A'),
                                                            .kind = kind}),
                     0);
}

static void start(Predictor *p, unsigned at_sec, char item)
{
    event(p, at_sec, item, PREDICTOR_START);
}

static void stop(Predictor *p, unsigned at_sec, char item)
{
    event(p, at_sec, item, PREDICTOR_EXIT);
}

static double guess_within(Predictor *p, unsigned at_sec, char item, usec_t horizon)
{
    _cleanup_guesses_ Guesses g = {0};

    assert_int_equal(predictor_predict(p, at_sec * S, horizon, &g), 0);
    for (size_t i = 0; i < g.n; i++)
        if (g.guesses[i].item == (uint32_t)(item - 'A'))
            return g.guesses[i].probability;
    return 0;
}

/* Compares one chain with equation 3.10 computed by hand: states 0, A (1), A and B (3), B (2). */
static void test_recursion(void **state)
{
    PredictorParameters par = defaults("preload");
    _cleanup_predictor_ Predictor *p = NULL;
    const PreloadChain *c;
    bool swapped = false;
    unsigned a, b;
    double w, v;

    par.halflife_usec = 100 * S;
    p = make_predictor("preload", &par);
    start(p, 0, 'A');
    stop(p, 0, 'A');
    start(p, 0, 'B');
    stop(p, 0, 'B'); /* both are known, and neither runs */
    start(p, 10, 'A');
    start(p, 30, 'B');
    stop(p, 60, 'A');
    stop(p, 100, 'B');
    start(p, 150, 'B'); /* state 0 is left again, after 50 s, now for B */
    c = preload_chain(p, 0, 1, &swapped);
    assert_non_null(c);
    a = swapped ? 2 : 1;
    b = swapped ? 1 : 2;
    assert_true(fabs((double)c->transition_usec[a] - 20e6) < 10);
    assert_true(fabs((double)c->transition_usec[3] - 30e6) < 10);
    assert_true(fabs((double)c->probability[a][3] - 1) < 1e-6);
    assert_true(fabs((double)c->probability[3][b] - 1) < 1e-6);
    /* State 0 was left at 0 for B (at once), at 10 for A (after 10 s), at 150 for B (after 50 s).
     */
    w = exp2(-10 / 100.0);
    v = exp2(-140 / 100.0);
    assert_true(fabs((double)c->transition_usec[0] - (v * (1 - w) * 10e6 + (1 - v) * 50e6)) < 100);
    assert_true(fabs((double)c->probability[0][a] - v * (1 - w)) < 1e-6);
    assert_true(fabs((double)c->probability[0][b] - (v * w + 1 - v)) < 1e-6);
}

/* Every visited row stays a distribution; with the printed algorithm 4.4 it does not. */
static void test_rows_are_distributions(void **state)
{
    _cleanup_predictor_ Predictor *p = make_predictor("preload", NULL);
    Random random = {5};
    bool running[6] = {false};
    unsigned at = 0, visited = 0;

    for (unsigned i = 0; i < 3000; i++) {
        unsigned x = random_below(&random, 6);

        at += random_below(&random, 3000);
        event(p, at, (char)('A' + x), running[x] ? PREDICTOR_EXIT : PREDICTOR_START);
        running[x] = !running[x];
    }
    for (uint32_t a = 0; a < 6; a++)
        for (uint32_t b = 0; b < a; b++) {
            bool swapped;
            const PreloadChain *c = preload_chain(p, a, b, &swapped);

            for (unsigned s = 0; s < 4; s++) {
                double sum = 0;

                if (c->left[s] == USEC_INFINITY)
                    continue;
                visited++;
                for (unsigned j = 0; j < 4; j++) {
                    assert_true(c->probability[s][j] >= 0 && c->probability[s][j] <= 1.000001f);
                    sum += (double)c->probability[s][j];
                }
                assert_true(fabs(sum - 1) < 1e-4);
                assert_true(c->transition_usec[s] >= 0);
            }
        }
    assert_int_equal(visited, 60);
}

/* Compares the prediction from two chains with equations 4.10 to 4.12 computed by hand. */
static void test_product(void **state)
{
    _cleanup_predictor_ Predictor *p = make_predictor("preload", NULL);
    double needed_1 = 0, needed_2 = 0;
    const uint32_t others[] = {1, 2};
    const usec_t tau = 20 * S;
    double result = 1;

    for (unsigned i = 0; i < 50; i++) {
        start(p, 1000 * i + 100, 'A');
        stop(p, 1000 * i + 200, 'A');
        start(p, 1000 * i + 300, 'B');
        start(p, 1000 * i + 500, 'C');
        stop(p, 1000 * i + 600, 'B');
        stop(p, 1000 * i + 700, 'C');
    }
    for (unsigned i = 0; i < 2; i++) {
        bool swapped;
        const PreloadChain *c = preload_chain(p, 0, others[i], &swapped);
        unsigned a = swapped ? 2 : 1;
        double needed = (1 - exp(-(double)tau / (double)c->transition_usec[0])) *
                        (double)(c->probability[0][a] + c->probability[0][3]);

        assert_true(needed > 0 && needed < 1);
        result *= 1 - needed;
        *(i == 0 ? &needed_1 : &needed_2) = needed;
    }
    assert_true(needed_1 != needed_2);
    assert_true(fabs(guess_within(p, 49700, 'A', tau) - (1 - result)) < 1e-6);
    start(p, 49750, 'A'); /* (1 - running) * ... */
    assert_near(guess_within(p, 49750, 'A', tau), 0);
}

/* The product is too high if many chains see the same start; the calibrated probability is not. */
static void test_calibration(void **state)
{
    enum { N_EVENTS = 6000, N_ITEMS = 12 };
    static PredictorEvent events[N_EVENTS];
    PredictorParameters par = defaults("mixture");
    bool running[N_ITEMS] = {false};
    Random random = {17};
    double at = 1e6, promised[2] = {0};
    unsigned came = 0;
    usec_t horizon = 30 * S;

    for (unsigned i = 0; i < N_EVENTS; i++) {
        unsigned x = random_below(&random, N_ITEMS);

        at += random_exponential(&random, 30e6);
        events[i] = (PredictorEvent){
                .at = (usec_t)at, .item = x, .kind = running[x] ? PREDICTOR_EXIT : PREDICTOR_START};
        running[x] = !running[x];
    }
    for (unsigned k = 0; k < 2; k++) {
        _cleanup_predictor_ Predictor *p = NULL;
        _cleanup_guesses_ Guesses g = {0};

        par.combination = k == 0 ? MIXTURE_CALIBRATED : MIXTURE_PRODUCT;
        p = make_predictor("mixture", &par);
        memset(running, 0, sizeof(running));
        came = 0;
        for (unsigned i = 0; i < N_EVENTS - 100; i++) {
            bool counted[N_ITEMS] = {false};

            assert_int_equal(predictor_observe(p, &events[i]), 0);
            running[events[i].item] = events[i].kind == PREDICTOR_START;
            if (i < N_EVENTS / 2)
                continue;
            assert_int_equal(predictor_predict(p, events[i].at, horizon, &g), 0);
            for (size_t j = 0; j < g.n; j++)
                promised[k] += g.guesses[j].probability;
            for (unsigned j = i + 1; j < N_EVENTS && events[j].at <= events[i].at + horizon; j++) {
                unsigned x = events[j].item;

                came += !counted[x] && !running[x] && events[j].kind == PREDICTOR_START;
                counted[x] = true;
            }
        }
    }
    assert_true(promised[0] > 0.9 * came && promised[0] < 1.1 * came);
    assert_true(promised[1] > 2 * came);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_recursion),
            cmocka_unit_test(test_rows_are_distributions),
            cmocka_unit_test(test_product),
            cmocka_unit_test(test_calibration),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
