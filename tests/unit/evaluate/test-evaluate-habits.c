/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests drawn habits, their oracle, and the predictors compared with it. */

#include "evaluate/habits.h"
#include "evaluate/simulate.h"
#include "util/evaluate-util.h"

#define S USEC_PER_SEC

static SimulateReport simulated(const SimulateInput *in, const SimulateParameters *sp,
                                const char *name)
{
    _cleanup_predictor_ Predictor *p = make_predictor(name, NULL);
    SimulateReport r;

    assert_int_equal(simulate(in, sp, p, &r), 0);
    return r;
}

/* With a bound on waste, only objects that are likely enough are read. */
static void test_waste_bound(void **state)
{
    HabitsParameters hp;
    _cleanup_habits_ Habits *h = NULL;
    _cleanup_simulate_input_ SimulateInput in = {0};
    SimulateParameters sp;
    SimulateReport bounded, unbounded;

    habits_parameters_init(&hp);
    assert_int_equal(habits_new(&hp, 21, &h), 0);
    assert_int_equal(habits_sessions(h, UID_INVALID, 40, 22, &in), 0);
    simulate_parameters_init(&sp);
    sp.budget_bytes = habits_union_bytes(h) / 2;
    unbounded = simulated(&in, &sp, "mixture");
    simulate_bound_waste(&sp, 0.15);
    bounded = simulated(&in, &sp, "mixture");
    assert_true(bounded.waste <= 0.15 && bounded.waste <= unbounded.waste);
    assert_true(bounded.hit_rate > 0.95 * unbounded.hit_rate);
    simulate_bound_waste(&sp, 0.03);
    bounded = simulated(&in, &sp, "mixture");
    assert_true(bounded.waste < 0.06 && bounded.waste < 0.8 * unbounded.waste);
    assert_true(bounded.n_reads > 0 && bounded.n_reads < unbounded.n_reads);
    simulate_bound_waste(&sp, 0);
    bounded = simulated(&in, &sp, "mixture"); /* only certain objects */
    assert_true(bounded.n_reads < unbounded.n_reads / 10);
    simulate_bound_waste(&sp, 0.15);
    sp.selection.minimum_use = 1.1;
    bounded = simulated(&in, &sp, "mixture");
    assert_int_equal(bounded.n_reads, 0);
}

/* With the habits that this test draws and at most 15 % waste, the mixture reaches 0.97 of the
 * oracle's hit rate for two users, and 0.98 for one user. For two users, the naive predictor is far
 * below the mixture, even if it fills its budget. */
static void test_near_the_oracle(void **state)
{
    static const double least[] = {0.97, 0.98};

    for (uint64_t seed = 101; seed < 103; seed++)
        for (unsigned k = 0; k < 2; k++) {
            HabitsParameters hp;
            _cleanup_habits_ Habits *h = NULL;
            _cleanup_simulate_input_ SimulateInput in = {0};
            _cleanup_predictor_ Predictor *o = NULL;
            SimulateParameters sp;
            SimulateReport mixture, oracle, naive, bounded;

            habits_parameters_init(&hp);
            assert_int_equal(habits_new(&hp, seed, &h), 0);
            assert_int_equal(habits_sessions(h, k == 0 ? UID_INVALID : 0, 60, ~seed, &in), 0);
            assert_int_equal(habits_oracle_new(h, 50, 7, &o), 0);
            simulate_parameters_init(&sp);
            sp.grace = 10 * S;
            sp.budget_bytes = habits_union_bytes(h) / 2;
            naive = simulated(&in, &sp, "naive");
            simulate_bound_waste(&sp, 0.15);
            bounded = simulated(&in, &sp, "naive");
            mixture = simulated(&in, &sp, "mixture");
            assert_int_equal(simulate(&in, &sp, o, &oracle), 0);
            assert_true(mixture.hit_rate >= least[k] * oracle.hit_rate);
            assert_true(mixture.waste <= 0.15);
            if (k == 0) {
                assert_true(naive.hit_rate < mixture.hit_rate - 0.05);
                assert_true(naive.waste > 0.3);
            }
            /* The probabilities of the naive predictor are shares of all starts. They are so small
             * that it reads nothing under the bound. */
            assert_int_equal(bounded.read_bytes, 0);
        }
}

/* The best single guess of the next start is right in a share of the cases between HABITS_GUESS_MIN
 * and HABITS_GUESS_MAX. The oracle knows the true probabilities of all starts. */
static void test_habits(void **state)
{
    HabitsParameters hp;

    habits_parameters_init(&hp);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        _cleanup_habits_ Habits *h = NULL;
        _cleanup_simulate_input_ SimulateInput in = {0};
        _cleanup_predictor_ Predictor *oracle = NULL;
        SimulateParameters sp;
        SimulateReport r;
        double promised = 0;
        uint64_t came = 0;

        assert_int_equal(habits_new(&hp, seed, &h), 0);
        assert_true(habits_best_guess(h) <= HABITS_GUESS_MAX);
        assert_true(habits_best_guess(h) >= HABITS_GUESS_MIN);
        assert_int_equal(habits_sessions(h, UID_INVALID, 30, seed, &in), 0);
        assert_int_equal(habits_oracle_new(h, 50, 1, &oracle), 0);
        simulate_parameters_init(&sp);
        sp.training = 0;
        sp.horizon = 20 * S;
        assert_int_equal(simulate(&in, &sp, oracle, &r), 0);
        /* The oracle's first guess is right as often as the habits state, and the oracle is
         * calibrated. */
        assert_true(fabs(r.first_right - habits_best_guess(h)) < 0.08);
        for (unsigned i = 0; i < SIMULATE_BINS; i++) {
            promised += r.bins[i].sum;
            came += r.bins[i].used;
        }
        assert_true(fabs(promised / (double)came - 1) < 0.1);
    }
    hp.n_users = 0;
    {
        Habits *h;

        assert_int_equal(habits_new(&hp, 1, &h), -EINVAL);
    }
}

/* The oracle is also calibrated for the horizon that ends with the session. */
static void test_oracle_session(void **state)
{
    HabitsParameters hp;
    _cleanup_habits_ Habits *h = NULL;
    _cleanup_simulate_input_ SimulateInput in = {0};
    _cleanup_predictor_ Predictor *oracle = NULL;
    SimulateParameters sp;
    SimulateReport r;
    double promised = 0;
    uint64_t came = 0;

    habits_parameters_init(&hp);
    assert_int_equal(habits_new(&hp, 11, &h), 0);
    assert_int_equal(habits_sessions(h, UID_INVALID, 30, 12, &in), 0);
    assert_int_equal(habits_oracle_new(h, 50, 1, &oracle), 0);
    simulate_parameters_init(&sp);
    sp.training = 0;
    sp.horizon = USEC_INFINITY;
    assert_int_equal(simulate(&in, &sp, oracle, &r), 0);
    for (unsigned i = 0; i < SIMULATE_BINS; i++) {
        promised += r.bins[i].sum;
        came += r.bins[i].used;
    }
    assert_true(fabs(promised / (double)came - 1) < 0.1);
}

/* The mixture's promises for the rest of the session come true as often as promised, however long
 * the pauses between two turns are. Sessions have 8 turns and more, 12 on average. */
static void test_promises_of_the_session(void **state)
{
    static const unsigned pauses[] = {300, 600, 1800, 3600};
    unsigned n_judged = 0;

    for (unsigned k = 0; k < ELEMENTSOF(pauses); k++) {
        SimulateBin bins[SIMULATE_BINS] = {0};
        SimulateParameters sp;
        HabitsParameters hp;

        habits_parameters_init(&hp);
        hp.think = pauses[k] * S;
        hp.session_minimum = 8 * hp.think;
        hp.session_mean = 4 * hp.think;
        simulate_parameters_init(&sp);
        sp.horizon = USEC_INFINITY;
        for (uint64_t seed = 1; seed <= 5; seed++) {
            _cleanup_habits_ Habits *h = NULL;
            _cleanup_simulate_input_ SimulateInput in = {0};
            SimulateReport r;

            assert_int_equal(habits_new(&hp, seed, &h), 0);
            assert_int_equal(habits_sessions(h, UID_INVALID, 100, ~seed, &in), 0);
            r = simulated(&in, &sp, "mixture");
            for (unsigned i = 0; i < SIMULATE_BINS; i++) {
                bins[i].n += r.bins[i].n;
                bins[i].used += r.bins[i].used;
                bins[i].sum += r.bins[i].sum;
            }
        }
        for (unsigned i = 0; i < SIMULATE_BINS; i++) {
            double n = (double)bins[i].n;

            assert_true(n < 200 || fabs(bins[i].sum - (double)bins[i].used) < 0.1 * n);
            n_judged += n >= 200;
        }
    }
    assert_true(n_judged >= 32);
}

static void add_run(SimulateInput *in, usec_t at, uint32_t item, usec_t runs)
{
    const SimulateEvent start = {.at = at, .item = item, .kind = SIMULATE_START};
    const SimulateEvent exit = {.at = at + runs, .item = item, .kind = SIMULATE_EXIT};

    assert_int_equal(simulate_add_event(in, &start), 0);
    if (runs > 0)
        assert_int_equal(simulate_add_event(in, &exit), 0);
}

/* An application counts if people start it alone, if it keeps running, and if it is large enough.
 */
static void test_find_real(void **state)
{
    enum { EDITOR, PLUGIN, COMMAND, SMALL, NEVER, DESKTOP, SOMETIMES, N };
    _cleanup_simulate_input_ SimulateInput in = {0};
    _cleanup_free_ uint32_t *found = NULL;
    size_t n;
    uint32_t object, tiny, item;

    assert_int_equal(simulate_add_object(&in, 3000000, &object), 0);
    assert_int_equal(simulate_add_object(&in, 1000, &tiny), 0);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(simulate_add_item(&in, i == SMALL ? &tiny : &object, 1, &item), 0);
    for (unsigned k = 0; k < 3; k++) {
        usec_t at = (1 + k) * 1000 * S;
        const SimulateEvent begin = {.at = at, .kind = SIMULATE_BEGIN};

        assert_int_equal(simulate_add_event(&in, &begin), 0);
        add_run(&in, at + HABITS_ALONE - 1, DESKTOP, 0);
        add_run(&in, at + 10 * S, EDITOR, HABITS_STAYS);
        add_run(&in, at + 20 * S, COMMAND, HABITS_STAYS - 1);
        add_run(&in, at + 30 * S, SMALL, 5 * S);
        add_run(&in, at + 40 * S, EDITOR, 0);
        add_run(&in, at + 40 * S + HABITS_ALONE - 1, PLUGIN, 0);
        /* SOMETIMES keeps running in one of three cases. */
        add_run(&in, at + 50 * S, SOMETIMES, k == 0 ? 0 : 1);
    }
    assert_int_equal(habits_find_real(&in, 2000000, &found, &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(found[0], EDITOR);
    free(TAKE_PTR(found));
    assert_int_equal(habits_find_real(&in, 1000, &found, &n), 0);
    assert_int_equal(n, 2);
    assert_int_equal(found[1], SMALL);
    free(TAKE_PTR(found));
    assert_int_equal(habits_find_real(&(SimulateInput){0}, 0, &found, &n), 0);
    assert_int_equal(n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_find_real),       cmocka_unit_test(test_habits),
            cmocka_unit_test(test_oracle_session),  cmocka_unit_test(test_waste_bound),
            cmocka_unit_test(test_near_the_oracle), cmocka_unit_test(test_promises_of_the_session),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
