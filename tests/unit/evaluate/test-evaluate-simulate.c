/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the simulator on traces that are small enough to count by hand. */

#include "evaluate/habits.h"
#include "evaluate/simulate.h"
#include "util/evaluate-util.h"

#define S USEC_PER_SEC

/* Makes a trace of items with one object each: letters are accesses a second apart, '|' ends a
 * session, '.' lets ten seconds pass. */
static void trace(SimulateInput *in, const char *letters, uint64_t bytes)
{
    usec_t at = 0;
    uint32_t i;

    for (char c = 'A'; c <= 'Z'; c++) {
        uint32_t object;

        assert_int_equal(simulate_add_object(in, bytes, &object), 0);
        assert_int_equal(simulate_add_item(in, &object, 1, &i), 0);
    }
    for (; *letters; letters++) {
        SimulateEvent e = {.at = at += *letters == '.' ? 10 * S : S,
                           .item = (uint32_t)(*letters - 'A'),
                           .kind = *letters == '|' ? SIMULATE_END : SIMULATE_ACCESS};

        if (*letters != '.')
            assert_int_equal(simulate_add_event(in, &e), 0);
    }
}

static SimulateReport simulated(const SimulateInput *in, const SimulateParameters *sp,
                                const char *name, const PredictorParameters *pp)
{
    _cleanup_predictor_ Predictor *p = make_predictor(name, pp);
    SimulateReport r;

    assert_int_equal(simulate(in, sp, p, &r), 0);
    return r;
}

static SimulateParameters files(uint64_t n, double training)
{
    SimulateParameters sp;

    simulate_parameters_init(&sp);
    sp.cache_unit = CACHE_FILES;
    sp.cache_size = n;
    sp.training = training;
    return sp;
}

/* In a cache of two files, only the repeated B of A B C A B B C is a hit, as counted by hand. */
static void test_lru(void **state)
{
    _cleanup_simulate_input_ SimulateInput in = {0};
    SimulateParameters sp = files(2, 0);
    SimulateReport r;

    trace(&in, "ABCABBC", 10);
    r = simulated(&in, &sp, "lru", NULL);
    assert_int_equal(r.n_scored, 7);
    assert_int_equal(r.n_objects, 7);
    assert_int_equal(r.n_cached, 1);
    assert_int_equal(r.n_selected, 0);
    assert_int_equal(r.n_reads, 0);
    assert_true(isnan(r.accuracy));

    sp.cache_size = 3; /* A B C | A B B C all hit */
    r = simulated(&in, &sp, "lru", NULL);
    assert_int_equal(r.n_cached, 4);
    sp.cache_unit = CACHE_BYTES;
    sp.cache_size = 29;
    r = simulated(&in, &sp, "lru", NULL);
    assert_int_equal(r.n_cached, 1);
    sp.cache_unit = CACHE_UNLIMITED;
    r = simulated(&in, &sp, "lru", NULL);
    assert_int_equal(r.n_cached, 4);
}

/* The first half of the events is for training: nothing counts in this half, and the cache is empty
 * at its end. */
static void test_training(void **state)
{
    _cleanup_simulate_input_ SimulateInput in = {0};
    SimulateParameters sp = files(1, 0.5);
    SimulateReport r;

    trace(&in, "ABCABCABCABC", 10);
    r = simulated(&in, &sp, "last-successor", NULL);
    assert_int_equal(r.n_scored, 6);
    /* The first scored access comes without a prediction before it. */
    assert_int_equal(r.n_selected, 5);
    assert_int_equal(r.n_first, 5);
    assert_int_equal(r.n_reads, 6); /* one after each access; the last is wasted */
    assert_int_equal(r.n_reads_used, 5);
    assert_int_equal(r.wasted_bytes, 10);
    assert_near(r.accuracy, 5.0 / 6);
    assert_near(r.hit_rate, 5.0 / 6);
    assert_near(r.waste, 1.0 / 6);
}

/* Nothing is read from empty files, however often they are predicted. */
static void test_empty_files(void **state)
{
    _cleanup_simulate_input_ SimulateInput in = {0};
    SimulateParameters sp = files(1, 0.5);
    SimulateReport r;

    trace(&in, "ABCABCABCABC", 0);
    r = simulated(&in, &sp, "last-successor", NULL);
    assert_int_equal(r.n_reads_used, 5);
    assert_int_equal(r.read_bytes, 0);
    assert_true(isnan(r.accuracy) && isnan(r.waste));
}

/* A budget that exceeds the cache is refused if the size of the cache is in bytes. If the size is
 * in files, a prediction reads at most as many files as the cache holds. */
static void test_budget_over_cache(void **state)
{
    _cleanup_simulate_input_ SimulateInput in = {0};
    _cleanup_predictor_ Predictor *p = make_predictor("naive", NULL);
    SimulateParameters sp = files(2, 0.5);
    SimulateReport r;

    trace(&in, "ABCDEFABCDEFABCDEFABCDEF", 10);
    sp.budget_bytes = 1000;
    r = simulated(&in, &sp, "naive", NULL);
    assert_true(r.n_selected > 0);
    assert_true(r.n_reads <= 2 * r.n_scored);
    sp.cache_unit = CACHE_BYTES;
    sp.cache_size = 999;
    assert_int_equal(simulate(&in, &sp, p, &r), -EINVAL);
    sp.cache_size = 1000;
    assert_int_equal(simulate(&in, &sp, p, &r), 0);
}

/* Objects that were read are wasted if they were evicted unused, or were still unused when the
 * session ended. */
static void test_waste(void **state)
{
    _cleanup_simulate_input_ SimulateInput in = {0};
    SimulateParameters sp = files(8, 0);
    SimulateReport r;

    trace(&in, "AB|AC|AB|", 10);
    r = simulated(&in, &sp, "last-successor", NULL);
    /* At the first A nothing is known. At the second A, B is read and wasted. After "AC", C is read
     * at the next A and wasted. */
    assert_int_equal(r.read_bytes, 20);
    assert_int_equal(r.wasted_bytes, 20);
    assert_int_equal(r.n_reads_used, 0);
}

/* A read takes time: an object that has not arrived is late and no hit. */
static void test_io_cost(void **state)
{
    _cleanup_simulate_input_ SimulateInput in = {0};
    SimulateParameters sp = files(8, 0.4);
    SimulateReport r;

    trace(&in, "AB|AB|AB|AB|AB|", 1000000);
    sp.io_fixed_usec = S / 4;
    r = simulated(&in, &sp, "last-successor", NULL); /* read in 0.25 s, used after 1 s */
    assert_int_equal(r.n_late, 0);
    assert_int_equal(r.n_cached, 3);
    assert_near(r.lead_usec, 3e6);
    assert_int_equal(r.n_in_time, 3);
    sp.io_bytes_per_sec = 1000000; /* each read takes another second */
    r = simulated(&in, &sp, "last-successor", NULL);
    assert_int_equal(r.n_late, 3);
    assert_int_equal(r.n_cached, 0);
    assert_int_equal(r.n_selected, 3); /* the right choice nevertheless */
    assert_int_equal(r.n_in_time, 0);
}

/* Compares the log loss of a PCM of order 2 with the log loss computed by hand. */
static void test_log_loss(void **state)
{
    _cleanup_simulate_input_ SimulateInput in = {0};
    SimulateParameters sp = files(8, 8.0 / 11);
    PredictorParameters pp = defaults("pcm");
    SimulateReport r;

    pp.partition_order = 2;
    trace(&in, "ABABABAC.ABC", 10); /* eight to train, three to score */
    sp.horizon = 2 * S;
    r = simulated(&in, &sp, "pcm", &pp);
    assert_int_equal(r.n_scored, 3);
    assert_int_equal(r.n_log_loss, 3);
    /* After A, B is predicted with 3/4 and C with 1/4; both come within two seconds. After B, A is
     * predicted as certain, because A has always followed B; but C comes, which was not predicted.
     * After C, A is predicted as certain, but nothing comes. */
    assert_true(fabs(r.log_loss - (-log(0.75) - log(0.25) - log(1e-6) - log(1e-6) - log(1e-6))) <
                1e-6);
    assert_int_equal(r.bins[7].n, 1);
    assert_int_equal(r.bins[7].used, 1);
    assert_int_equal(r.bins[2].n, 1);
    assert_int_equal(r.bins[2].used, 1);
    assert_int_equal(r.bins[9].n, 2);
    assert_int_equal(r.bins[9].used, 0);
    /* The next item: A was not predicted (1e-4), B was predicted with 3/4, C was not predicted. */
    assert_true(fabs(r.next_log_loss - (-log(1e-4) - log(0.75) - log(1e-4))) < 1e-6);

    /* Without further learning, the context stays as after the training. */
    sp.learn_on = false;
    r = simulated(&in, &sp, "pcm", &pp);
    assert_int_equal(r.bins[7].n, 0);
}

/* Objects are selected by falling probability within the budget (thesis 4.3.2). Equation 4.16 gives
 * the probability of shared objects. */
static void test_budget(void **state)
{
    for (unsigned k = 0; k <= 4; k++) {
        _cleanup_simulate_input_ SimulateInput in = {0};
        SimulateParameters sp;
        SimulateReport r;
        uint32_t object, item;

        for (unsigned i = 0; i < 5; i++)
            assert_int_equal(simulate_add_object(&in, i == 3 ? 7 : 100, &object), 0);
        assert_int_equal(simulate_add_item(&in, (uint32_t[]){0, 3}, 2, &item), 0);
        assert_int_equal(simulate_add_item(&in, (uint32_t[]){1, 3}, 2, &item), 0);
        assert_int_equal(simulate_add_item(&in, (uint32_t[]){2}, 1, &item), 0);
        assert_int_equal(simulate_add_item(&in, (uint32_t[]){4}, 1, &item), 0);
        for (unsigned i = 0; i < 12; i++) { /* 0 four times, 1 three, 2 five: 1/3, 1/4, 5/12 */
            static const uint32_t which[] = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 2, 2};
            SimulateEvent e = {.at = i * S, .item = which[i], .kind = SIMULATE_ACCESS};

            assert_int_equal(simulate_add_event(&in, &e), 0);
        }
        /* Item 3 was never seen; prediction begins with its access. Before this access, object 3 is
         * needed with the probability 1 - 2/3 * 3/4 = 1/2, object 2 with 5/12, object 0 with 1/3
         * and object 1 with 1/4. The access multiplies the share of each other item by 12/13, which
         * does not change the order. Object 4 comes last. */
        assert_int_equal(
                simulate_add_event(
                        &in, &(SimulateEvent){.at = 13 * S, .item = 3, .kind = SIMULATE_ACCESS}),
                0);
        assert_int_equal(simulate_add_event(&in, &(SimulateEvent){.at = 14 * S,
                                                                  .item = k == 0   ? 0
                                                                          : k == 1 ? 1
                                                                                   : 2,
                                                                  .kind = SIMULATE_ACCESS}),
                         0);
        simulate_parameters_init(&sp);
        sp.training = 12.0 / 14;
        sp.budget_bytes = k == 4 ? 7 : k == 3 ? 106 : 207;
        sp.seek_bytes = 0; /* by probability alone, as in the thesis */
        r = simulated(&in, &sp, "naive", NULL);
        assert_int_equal(r.n_scored, 2);
        assert_int_equal(r.n_objects, k < 2 ? 3 : 2);
        /* A budget of 207 holds the objects 3, 2 and 0: items 0 and 2 are complete, and item 1 has
         * its shared part. A budget of 106 holds object 3; no object of 100 bytes fits beside it.
         */
        assert_int_equal(r.n_selected, k == 0 ? 2 : k == 1 ? 1 : k == 2 ? 1 : 0);
        assert_int_equal(r.n_covered, k == 0 || k == 2);
    }
}

/* Compares with equation 4.16 computed by hand, and does so again for other guesses in the same
 * memory. */
static void test_needs(void **state)
{
    static const ItemParts items[] = {{0, 2}, {2, 2}, {4, 0}, {4, 1}};
    static const uint32_t parts[] = {0, 1, 1, 2, 3};
    const ObjectTable table = {.items = items, .n_items = 4, .parts = parts, .n_objects = 4};
    Guess some[] = {{0, 0.5}, {1, 0.25}, {2, 1}, {99, 0.5}}, others[] = {{3, 1}};
    _cleanup_object_scores_ ObjectScores s = {0};

    assert_int_equal(object_scores_compute(&s, &table, &(Guesses){some, 4, 4}), 0);
    assert_int_equal(s.n, 3);
    assert_int_equal(s.scores[0].object, 1);
    assert_near(s.scores[0].probability, 1 - 0.5 * 0.75);
    assert_int_equal(s.scores[1].object, 0);
    assert_near(s.scores[1].probability, 0.5);
    assert_int_equal(s.scores[2].object, 2);
    assert_near(s.scores[2].probability, 0.25);
    assert_near(object_scores_probability(&s, 2), 0.25);
    assert_near(object_scores_probability(&s, 3), 0);
    assert_near(object_scores_probability(&s, 4), 0);

    assert_int_equal(object_scores_compute(&s, &table, &(Guesses){others, 1, 1}), 0);
    assert_int_equal(s.n, 1);
    assert_near(s.scores[0].probability, 1);
    assert_near(object_scores_probability(&s, 1), 0);
}

/* Objects are ordered by their probability times the time that they save per byte. */
static void test_worth(void **state)
{
    static const ItemParts items[] = {{0, 1}, {1, 1}, {2, 1}};
    static const uint32_t parts[] = {0, 1, 2};
    const double worth[] = {object_worth(1000000000, 1000000), object_worth(8192, 1000000),
                            object_worth(8192, 1000000)};
    Guess some[] = {{0, 0.9}, {1, 0.5}, {2, 0.51}};
    ObjectTable table = {
            .items = items, .n_items = 3, .parts = parts, .n_objects = 3, .worth = worth};
    _cleanup_object_scores_ ObjectScores s = {0};

    assert_near(worth[0], 1.001);
    assert_near(object_worth(1, 4096), 2); /* a page is the smallest size */
    assert_near(object_worth(0, 0), 1);
    assert_int_equal(object_scores_compute(&s, &table, &(Guesses){some, 3, 3}), 0);
    assert_int_equal(s.n, 3);
    assert_int_equal(s.scores[0].object, 2);
    assert_int_equal(s.scores[1].object, 1);
    assert_int_equal(s.scores[2].object, 0);
    assert_near(s.scores[2].probability, 0.9);
    table.worth = NULL;
    assert_int_equal(object_scores_compute(&s, &table, &(Guesses){some, 3, 3}), 0);
    assert_int_equal(s.scores[0].object, 0);
}

/* Adds a session in which `second` follows A. */
static void add_session(SimulateInput *in, usec_t at, usec_t realtime, uint32_t second)
{
    const SimulateEvent events[] = {
            {.at = at, .kind = SIMULATE_BEGIN, .realtime = realtime},
            {.at = at + 10 * S, .item = 0, .kind = SIMULATE_START},
            {.at = at + 60 * S, .item = second, .kind = SIMULATE_START},
            {.at = at + 120 * S, .item = 0, .kind = SIMULATE_EXIT},
            {.at = at + 130 * S, .item = second, .kind = SIMULATE_EXIT},
            {.at = at + 300 * S, .kind = SIMULATE_END},
    };

    for (size_t i = 0; i < ELEMENTSOF(events); i++)
        assert_int_equal(simulate_add_event(in, &events[i]), 0);
}

/* Simulates the mixture with ten sessions in which B follows A, then four in which C does. Each of
 * the four is `weeks` later than the previous session; 0 means that no date is known. Only the last
 * session is scored. */
static SimulateReport simulate_changed_habit(unsigned weeks)
{
    _cleanup_simulate_input_ SimulateInput in = {0};
    const usec_t first = 1700000000ULL * S;
    SimulateParameters sp;

    trace(&in, "", 10);
    for (unsigned i = 0; i < 14; i++)
        add_session(&in, i * 301 * S,
                    weeks == 0 ? 0
                               : first + i * 301 * S +
                                         (i < 10 ? 0 : (i - 9) * weeks * 7 * 86400ULL * S),
                    i < 10 ? 1 : 2);
    simulate_parameters_init(&sp);
    sp.training = 13.0 / 14;
    return simulated(&in, &sp, "mixture", NULL);
}

/* Observations decay by the wall clock, although the sessions follow one another at once. */
static void test_wall_clock(void **state)
{
    SimulateReport unknown = simulate_changed_habit(0), later = simulate_changed_habit(3);

    assert_int_equal(unknown.n_scored, 2);
    assert_int_equal(unknown.n_first, 1); /* only A; B is still likelier than C */
    assert_int_equal(later.n_first, 2);
    assert_true(later.next_log_loss < unknown.next_log_loss);
}

/* The same seed gives the same report, bit for bit. */
static void test_deterministic(void **state)
{
    HabitsParameters hp;

    habits_parameters_init(&hp);
    for (size_t i = 0; predictor_name(i); i++) {
        SimulateReport r[2];

        memset(r, 0, sizeof(r));
        for (unsigned k = 0; k < 2; k++) {
            _cleanup_habits_ Habits *h = NULL;
            _cleanup_simulate_input_ SimulateInput in = {0};
            SimulateParameters sp;

            simulate_parameters_init(&sp);
            simulate_bound_waste(&sp, 0.15);
            assert_int_equal(habits_new(&hp, 3, &h), 0);
            assert_int_equal(habits_sessions(h, UID_INVALID, 6, 4, &in), 0);
            r[k] = simulated(&in, &sp, predictor_name(i), NULL);
        }
        assert_true(r[0].hit_rate == r[1].hit_rate || isnan(r[0].hit_rate));
        assert_true(r[0].log_loss == r[1].log_loss);
        assert_int_equal(r[0].read_bytes, r[1].read_bytes);
        assert_int_equal(r[0].n_selected, r[1].n_selected);
        assert_memory_equal(r[0].bins, r[1].bins, sizeof(r[0].bins));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_lru),         cmocka_unit_test(test_training),
            cmocka_unit_test(test_empty_files), cmocka_unit_test(test_budget_over_cache),
            cmocka_unit_test(test_waste),       cmocka_unit_test(test_io_cost),
            cmocka_unit_test(test_log_loss),    cmocka_unit_test(test_budget),
            cmocka_unit_test(test_wall_clock),  cmocka_unit_test(test_deterministic),
            cmocka_unit_test(test_needs),       cmocka_unit_test(test_worth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
