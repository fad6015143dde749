/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The thesis's predictor (chapters 3 and 4) and headstart's mixture. */

#include "evaluate/preload.h"
#include "evaluate/random.h"
#include "predict/mixture.h"
#include "util/predict-util.h"

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

static double guess_within(Predictor *p, unsigned at_sec, char item, usec_t horizon,
                           const PredictorState *state)
{
    _cleanup_predictor_guesses_ PredictorGuesses g = {0};

    assert_int_equal(predictor_predict(p, at_sec * S, state, horizon, &g), 0);
    for (size_t i = 0; i < g.n; i++)
        if (g.guesses[i].item == (uint32_t)(item - 'A'))
            return g.guesses[i].probability;
    return 0;
}

/* Equation 3.10 by hand for one chain: states 0, A (1), A and B (3), B (2). */
static void test_recursion(void **state)
{
    PredictorParameters par = defaults("preload");
    _cleanup_predictor_ Predictor *p = NULL;
    const PreloadChain *c;
    bool swapped;
    unsigned a, b;
    double w, v;

    par.halflife_usec = 100 * S;
    p = make_predictor("preload", &par);
    start(p, 0, 'A');
    stop(p, 0, 'A');
    start(p, 0, 'B');
    stop(p, 0, 'B'); /* both are known, nothing runs */
    start(p, 10, 'A');
    start(p, 30, 'B');
    stop(p, 60, 'A');
    stop(p, 100, 'B');
    start(p, 150, 'B'); /* state 0 again, after 50 s, and now to B */
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

/* What algorithm 4.4 as printed breaks: every row that was visited stays a distribution. */
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

/* Equations 4.10 to 4.12 by hand, for two chains. */
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
    assert_true(fabs(guess_within(p, 49700, 'A', tau, NULL) - (1 - result)) < 1e-6);
    start(p, 49750, 'A'); /* (1 - running) * ... */
    assert_near(guess_within(p, 49750, 'A', tau, NULL), 0);
}

/* Two applications, one always a minute after the other: the mixture knows, user or not. */
static void train_pair(Predictor *p, uint32_t user, unsigned *at, char first, char second)
{
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(predictor_begin(p, *at * S, user), 0);
        for (unsigned j = 0; j < 5; j++) {
            start(p, *at + 600, first);
            start(p, *at + 660, second);
            stop(p, *at + 900, first);
            stop(p, *at + 1000, second);
            *at += 1800;
        }
        assert_int_equal(predictor_end(p, *at * S), 0);
    }
}

static void test_mixture_follows(void **state)
{
    _cleanup_predictor_ Predictor *p = make_predictor("mixture", NULL);
    unsigned at = 100;
    double after, before;

    train_pair(p, 1000, &at, 'A', 'B');
    assert_int_equal(predictor_begin(p, at * S, 1000), 0);
    start(p, at + 10, 'C');
    before = guess_within(p, at + 10, 'B', 60 * S, NULL);
    start(p, at + 20, 'A');
    after = guess_within(p, at + 20, 'B', 60 * S, NULL);
    assert_true(after > 5 * before);
    assert_true(after > 0.4 && after < 0.9); /* the hazard of 1 a minute gives 0.63 */
    assert_near(guess_within(p, at + 20, 'A', 60 * S, NULL), 0); /* it runs */
}

/* The pair (user, application): each user's own habits; a stranger gets everybody's. */
static void test_mixture_users(void **state)
{
    PredictorParameters par = defaults("mixture");
    _cleanup_predictor_ Predictor *p = make_predictor("mixture", &par), *blind = NULL;
    unsigned at = 100, at_blind = 100;
    PredictorState one = {.user = 1000, .last = PREDICTOR_NONE},
                   two = {.user = 1001, .last = PREDICTOR_NONE},
                   stranger = {.user = 1002, .last = PREDICTOR_NONE};
    double mine, other, strange;

    par.mixture_users = false;
    blind = make_predictor("mixture", &par);
    train_pair(p, 1000, &at, 'A', 'B');
    train_pair(p, 1001, &at, 'D', 'E');
    train_pair(blind, 1000, &at_blind, 'A', 'B');
    train_pair(blind, 1001, &at_blind, 'D', 'E');
    mine = guess_within(p, at, 'A', 600 * S, &one);
    other = guess_within(p, at, 'A', 600 * S, &two);
    strange = guess_within(p, at, 'A', 600 * S, &stranger);
    assert_true(mine > 3 * other);
    assert_true(strange > other && strange < mine);
    assert_near(guess_within(blind, at, 'A', 600 * S, &one),
                guess_within(blind, at, 'A', 600 * S, &two));
}

/* A given state means what the same observed state means. */
static void test_mixture_state(void **state)
{
    _cleanup_predictor_ Predictor *p = make_predictor("mixture", NULL);
    uint32_t running[] = {0, 0, 77};
    PredictorState given = {.user = 1000, .last = 0, .running = running, .n_running = 3};
    unsigned at = 100;
    double x, y;

    train_pair(p, 1000, &at, 'A', 'B');
    y = guess_within(p, at, 'B', 60 * S, &given);
    assert_int_equal(predictor_begin(p, at * S, 1000), 0);
    start(p, at, 'A');
    x = guess_within(p, at, 'B', 60 * S, NULL);
    assert_true(fabs(x - y) < 0.02);
    assert_near(guess_within(p, at, 'A', 60 * S, &given), 0);
}

/* Longer horizons are likelier; the session's end bounds them. */
static void test_mixture_horizon(void **state)
{
    _cleanup_predictor_ Predictor *p = make_predictor("mixture", NULL);
    unsigned at = 100;
    double last = 0, end;

    train_pair(p, 1000, &at, 'A', 'B');
    assert_int_equal(predictor_begin(p, at * S, 1000), 0);
    for (usec_t tau = S; tau < 3600 * S; tau *= 2) {
        double x = guess_within(p, at, 'A', tau, NULL);

        assert_true(x > last && x <= 1);
        last = x;
    }
    end = guess_within(p, at, 'A', USEC_INFINITY, NULL);
    assert_true(end > 0.6 && end <= 1); /* five times a session */
}

/* The product overstates where many chains see the same start coming; the calibrated one does not.
 */
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
        _cleanup_predictor_guesses_ PredictorGuesses g = {0};

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
            assert_int_equal(predictor_predict(p, events[i].at, NULL, horizon, &g), 0);
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

/* Chains made of a mixture: saved, loaded, the same predictions; the learned weights with them. */
static void test_mixture_saved(void **state)
{
    _cleanup_predictor_ Predictor *p = make_predictor("mixture", NULL),
                                  *q = make_predictor("mixture", NULL);
    _cleanup_free_ char *text = NULL;
    unsigned at = 100;
    Chains *c;
    uint32_t id;

    for (char x = 'A'; x <= 'E'; x++) /* sorted names: ids stay what they are */
        assert_int_equal(chains_add_name(mixture_chains(p), (char[]){'/', x, 0}, &id), 0);
    train_pair(p, 1000, &at, 'A', 'B');
    train_pair(p, 1001, &at, 'C', 'D');
    train_pair(p, 1000, &at, 'D', 'E');
    assert_int_equal(chains_to_json(mixture_chains(p), &text), 0);
    assert_int_equal(chains_from_json(text, strlen(text), &c), 0);
    assert_int_equal(mixture_set_chains(q, c), 0);
    assert_int_equal(predictor_begin(p, at * S, 1000), 0);
    assert_int_equal(predictor_begin(q, at * S, 1000), 0);
    start(p, at + 5, 'A');
    start(q, at + 5, 'A');
    for (char x = 'A'; x <= 'E'; x++)
        assert_near(guess_within(p, at + 9, x, 60 * S, NULL),
                    guess_within(q, at + 9, x, 60 * S, NULL));
    assert_int_equal(mixture_set_chains(q, c), -EINVAL); /* too late */
}

/* Memory grows with what was observed, not with the square of what is known: applications in groups
 * that never meet. */
static void test_linear_memory(void **state)
{
    size_t size[2];

    for (unsigned k = 0; k < 2; k++) {
        _cleanup_predictor_ Predictor *p = make_predictor("mixture", NULL);
        unsigned n_groups = k == 0 ? 25 : 100;
        usec_t at = S;

        for (unsigned g = 0; g < n_groups; g++)
            for (unsigned i = 0; i < 40; i++) {
                PredictorEvent e = {.at = at, .item = g * 10 + i % 10, .kind = PREDICTOR_START};

                assert_int_equal(predictor_observe(p, &e), 0);
                e.at += 30 * S;
                e.kind = PREDICTOR_EXIT;
                assert_int_equal(predictor_observe(p, &e), 0);
                at += (i == 39 ? 3600 : 60) * S;
            }
        size[k] = predictor_size(p);
    }
    assert_true(size[1] < 6 * size[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_recursion),       cmocka_unit_test(test_rows_are_distributions),
            cmocka_unit_test(test_product),         cmocka_unit_test(test_mixture_follows),
            cmocka_unit_test(test_mixture_users),   cmocka_unit_test(test_mixture_state),
            cmocka_unit_test(test_mixture_horizon), cmocka_unit_test(test_calibration),
            cmocka_unit_test(test_mixture_saved),   cmocka_unit_test(test_linear_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
