/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests that no input causes a crash or a probability outside 0..1. Runs every test with every
 * predictor. */

#include "evaluate/random.h"
#include "evaluate/simulate.h"
#include "predict/mixture.h"
#include "util/evaluate-util.h"

static void assert_sane(Predictor *p, usec_t now)
{
    static const usec_t horizons[] = {0, 1, 20 * USEC_PER_SEC, USEC_INFINITY - 1, USEC_INFINITY};
    _cleanup_guesses_ Guesses g = {0};

    for (size_t k = 0; k < ELEMENTSOF(horizons); k++) {
        assert_int_equal(predictor_predict(p, now, horizons[k], &g), 0);
        for (size_t i = 0; i < g.n; i++) {
            /* With NaN these comparisons are false. */
            assert_true(g.guesses[i].probability > 0 && g.guesses[i].probability <= 1);
            assert_true(g.guesses[i].item < PREDICTOR_ITEMS_MAX);
            if (i > 0)
                assert_true(g.guesses[i - 1].probability >= g.guesses[i].probability);
        }
    }
    assert_true(predictor_size(p) < (size_t)1 << 30);
}

#define FOR_EACH_PREDICTOR(p)                     \
    for (size_t _i = 0; predictor_name(_i); _i++) \
        for (Predictor *p = make_predictor(predictor_name(_i), NULL); p; p = predictor_free(p))

/* Times run back and jump; kinds, users and items are random; sessions begin and end at random. */
static void test_random_events(void **state)
{
    FOR_EACH_PREDICTOR(p)
    {
        Random random = {99};
        usec_t at = 1000000;

        for (unsigned i = 0; i < 4000; i++) {
            PredictorEvent e = {.at = at,
                                .user = random_below(&random, 5) ? random_below(&random, 3)
                                                                 : PREDICTOR_NONE,
                                .item = random_below(&random, 40),
                                .kind = (PredictorEventKind)random_below(&random, 3)};

            switch (random_below(&random, 40)) {
            case 0:
                at = random_uint64(&random) >> 20;
                break;
            case 1:
                at -= MIN(at, (usec_t)random_below(&random, 1000000000));
                break;
            case 2:
                assert_int_equal(predictor_begin(p, at, e.user), 0);
                break;
            case 3:
                assert_int_equal(predictor_end(p, at), 0);
                break;
            case 4:
                at += 400 * 24 * USEC_PER_HOUR;
                break;
            default:
                at += random_below(&random, 100000000);
            }
            assert_int_equal(predictor_observe(p, &e), 0);
            if (i % 50 == 0)
                assert_sane(p, at);
        }
        assert_sane(p, 0);
        assert_sane(p, USEC_INFINITY);
    }
}

static void test_extreme_times(void **state)
{
    static const usec_t times[] = {0, USEC_INFINITY, 1, USEC_INFINITY - 1, 0, USEC_INFINITY / 2};

    FOR_EACH_PREDICTOR(p)
    {
        for (size_t i = 0; i < ELEMENTSOF(times); i++)
            for (uint32_t item = 0; item < 3; item++) {
                PredictorEvent e = {.at = times[i], .item = item};

                assert_int_equal(predictor_observe(p, &e), 0);
                assert_sane(p, times[i]);
                e.kind = PREDICTOR_EXIT;
                assert_int_equal(predictor_observe(p, &e), 0);
            }
        assert_int_equal(predictor_end(p, 0), 0);
        assert_sane(p, 0);
    }
}

static void test_out_of_range(void **state)
{
    FOR_EACH_PREDICTOR(p)
    {
        assert_int_equal(predictor_observe(p, &(PredictorEvent){.kind = (PredictorEventKind)-1}),
                         -EINVAL);
        assert_int_equal(predictor_observe(p, &(PredictorEvent){.kind = _PREDICTOR_EVENT_KIND_MAX}),
                         -EINVAL);
        assert_int_equal(predictor_observe(p, &(PredictorEvent){.item = PREDICTOR_ITEMS_MAX}),
                         -EINVAL);
        assert_int_equal(predictor_observe(p, &(PredictorEvent){.item = PREDICTOR_NONE}), -EINVAL);
        assert_sane(p, 0);
    }
}

/* Predicts after no event, after one event, after a start and an exit in the same instant, after an
 * exit without a start, and after the same process has started twice (duplicate pids). */
static void test_little(void **state)
{
    FOR_EACH_PREDICTOR(p)
    {
        PredictorEvent e = {.at = 5, .item = 3, .kind = PREDICTOR_EXIT};

        assert_sane(p, 0);
        assert_int_equal(predictor_end(p, 1), 0);
        assert_int_equal(predictor_observe(p, &e), 0);
        assert_sane(p, 5);
        for (unsigned i = 0; i < 5; i++) {
            e.kind = PREDICTOR_START;
            assert_int_equal(predictor_observe(p, &e), 0);
            assert_sane(p, 5);
            e.kind = PREDICTOR_EXIT;
            assert_int_equal(predictor_observe(p, &e), 0);
            assert_sane(p, 5);
        }
        e.kind = PREDICTOR_START;
        assert_int_equal(predictor_observe(p, &e), 0);
        assert_int_equal(predictor_observe(p, &e), 0);
        assert_int_equal(predictor_begin(p, 9, 0), 0);
        assert_int_equal(predictor_begin(p, 9, 1), 0);
        assert_int_equal(predictor_end(p, 9), 0);
        assert_int_equal(predictor_end(p, 9), 0);
        assert_sane(p, 9);
    }
}

/* 10,000 applications, and the highest possible item. */
static void test_many(void **state)
{
    FOR_EACH_PREDICTOR(p)
    {
        for (uint32_t i = 0; i <= 10000; i++) {
            PredictorEvent e = {.at = (usec_t)i * 120 * USEC_PER_SEC,
                                .item = i < 10000 ? i : PREDICTOR_ITEMS_MAX - 1,
                                .kind = PREDICTOR_START};

            assert_int_equal(predictor_observe(p, &e), 0);
            e.kind = PREDICTOR_EXIT;
            e.at += 30 * USEC_PER_SEC;
            if (i % 100)
                assert_int_equal(predictor_observe(p, &e), 0);
        }
        assert_sane(p, 0);
    }
}

static void test_parameters(void **state)
{
    PredictorParameters good = defaults("mixture"), p;
    Predictor *ret = NULL;

    assert_int_equal(predictor_parameters_init(&p, "nonesuch"), -ENOENT);
    assert_int_equal(predictor_new("nonesuch", NULL, 0, &ret), -ENOENT);
#define BAD(field, value)                      \
    p = good;                                  \
    p.field = value;                           \
    for (size_t i = 0; predictor_name(i); i++) \
    assert_int_equal(predictor_new(predictor_name(i), &p, 0, &ret), -EINVAL)
    BAD(ngram_predecessors, 0);
    BAD(ngram_predecessors, 9);
    BAD(ngram_successors, 0);
    BAD(ngram_successors, 17);
    BAD(association_window, 1);
    BAD(association_window, 9);
    BAD(association_support, (double)NAN);
    BAD(association_confidence, -0.1);
    BAD(graph_lookahead, 0);
    BAD(graph_lookahead, 65);
    BAD(graph_minimum_chance, 1.1);
    BAD(partition_nodes, 1);
    BAD(partition_nodes, 4097);
    BAD(partition_order, 65);
    BAD(partition_threshold, (double)NAN);
    BAD(partition_jump, 45);
    BAD(halflife_usec, 0);
    BAD(chain_window, 0);
    BAD(combination, _MIXTURE_COMBINATION_MAX);
    assert_null(ret);
}

/* Simulates an empty input, random objects and events with several parameters, invalid parameters,
 * and invalid indexes. */
static void test_simulate(void **state)
{
    _cleanup_simulate_input_ SimulateInput in = {0};
    SimulateParameters sp;
    Random random = {7};
    uint32_t object, item;

    simulate_parameters_init(&sp);
    FOR_EACH_PREDICTOR(p)
    {
        SimulateReport r;

        assert_int_equal(simulate(&in, &sp, p, &r), 0); /* an empty input */
        assert_true(isnan(r.hit_rate));
    }
    for (unsigned i = 0; i < 12; i++) {
        uint32_t parts[3];

        assert_int_equal(simulate_add_object(&in,
                                             i == 5   ? UINT64_MAX / 64
                                             : i == 6 ? 0
                                                      : 4096 * i,
                                             &object),
                         0);
        for (unsigned j = 0; j < 3; j++)
            parts[j] = random_below(&random, i + 1);
        assert_int_equal(simulate_add_item(&in, parts, i % 4, &item), 0);
    }
    for (unsigned i = 0; i < 2000; i++) {
        SimulateEvent e = {.at = random_uint64(&random) >> (random_below(&random, 64)),
                           .user = random_below(&random, 3),
                           .item = random_below(&random, 12),
                           .kind = (SimulateEventKind)random_below(&random, 5)};

        if (i % 3)
            e.at = i * 100000;
        assert_int_equal(simulate_add_event(&in, &e), 0);
    }
    for (unsigned k = 0; k < 6; k++)
        FOR_EACH_PREDICTOR(p)
        {
            SimulateReport r;

            simulate_parameters_init(&sp);
            sp.cache_unit = (CacheUnit)(k % 3);
            sp.cache_size = k == 4 ? 0 : 9000;
            sp.cycle = k == 5 ? 20 * USEC_PER_SEC : 0;
            if (k % 2)
                simulate_bound_waste(&sp, 0.1);
            sp.training = k == 2 ? 0 : 0.3;
            sp.horizon = k == 3 ? USEC_INFINITY : 0;
            sp.budget_bytes = k == 1 ? 5000 : UINT64_MAX;
            sp.io_fixed_usec = k == 1 ? USEC_INFINITY / 4 : 10;
            assert_int_equal(simulate(&in, &sp, p, &r), 0);
            assert_true(r.n_selected <= r.n_objects && r.n_cached + r.n_late <= r.n_objects);
            assert_true(r.wasted_bytes <= r.read_bytes);
            assert_true(r.log_loss >= 0 && isfinite(r.log_loss));
            assert_true(r.n_reads_used <= r.n_reads);
        }
    {
        Predictor *p = make_predictor("lru", NULL);
        SimulateReport r;

        simulate_parameters_init(&sp);
        sp.training = (double)NAN;
        assert_int_equal(simulate(&in, &sp, p, &r), -EINVAL);
        simulate_parameters_init(&sp);
        simulate_bound_waste(&sp, -1);
        assert_int_equal(simulate(&in, &sp, p, &r), -EINVAL);
        simulate_parameters_init(&sp);
        in.events[7].item = 12;
        in.events[7].kind = SIMULATE_ACCESS;
        assert_int_equal(simulate(&in, &sp, p, &r), -EINVAL);
        in.events[7].item = 0;
        in.parts[1] = 12;
        assert_int_equal(simulate(&in, &sp, p, &r), -EINVAL);
        predictor_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_random_events), cmocka_unit_test(test_extreme_times),
            cmocka_unit_test(test_out_of_range),  cmocka_unit_test(test_little),
            cmocka_unit_test(test_many),          cmocka_unit_test(test_parameters),
            cmocka_unit_test(test_simulate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
