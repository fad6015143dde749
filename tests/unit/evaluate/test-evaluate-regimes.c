/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the mixture on habits that its own model does not describe. tests/measure/measure-regimes
 * prints all figures.
 */

#include "evaluate/predictor.h"
#include "util/regimes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* needs the three headers above */
#include <cmocka.h>

static SimulateReport simulated(Regime regime, const char *name, unsigned percent)
{
    _cleanup_simulate_input_ SimulateInput in = {0};
    _cleanup_predictor_ Predictor *p = NULL;
    SimulateParameters sp;
    SimulateReport report;
    uint64_t bytes = 0;

    simulate_parameters_init(&sp);
    assert_int_equal(regime_draw(regime, 1, &in, &sp.training), 0);
    for (size_t i = 0; i < in.n_objects; i++)
        bytes += in.object_bytes[i];
    sp.budget_bytes = bytes * percent / 100;
    assert_int_equal(predictor_new(name, NULL, 1, &p), 0);
    assert_int_equal(simulate(&in, &sp, p, &report), 0);
    return report;
}

/* Starts are fifteen minutes apart: the application that started last co-occurs with the next one.
 * The budget has room for one of the six applications. */
static void slow_starters_have_chains(void **state)
{
    SimulateReport mixture = simulated(REGIME_IN_ORDER, "mixture", 20);

    assert_true(mixture.first_right > 0.99);
    assert_true(mixture.hit_rate > 0.99);
    assert_true(mixture.hit_rate > simulated(REGIME_IN_ORDER, "last-successor", 20).hit_rate);
}

/* Compares the mixture, in three regimes and with a small budget, with the single predictor that is
 * the best in the regime. */
static void not_behind_the_best(void **state)
{
    static const struct {
        Regime regime;
        const char *best;
    } cases[] = {{REGIME_ORDER_TWO, "pcm"}, {REGIME_BURSTS, "pcm"}, {REGIME_NEVER_CLOSES, "naive"}};

    for (size_t i = 0; i < ELEMENTSOF(cases); i++)
        assert_true(simulated(cases[i].regime, "mixture", 20).hit_rate >
                    simulated(cases[i].regime, cases[i].best, 20).hit_rate - 0.01);
}

static void names(void **state)
{
    for (Regime r = 0; r < _REGIME_MAX; r++)
        assert_non_null(regime_to_string(r));
    assert_null(regime_to_string(_REGIME_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(slow_starters_have_chains),
            cmocka_unit_test(not_behind_the_best),
            cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
