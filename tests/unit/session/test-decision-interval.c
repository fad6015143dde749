/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "session/decision-interval.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define CYCLE (20 * USEC_PER_SEC)

/* The prefetcher, as far as it decides when to decide. */
typedef struct Decider {
    usec_t decided_at, interval;
    uint64_t n_starts, n_decisions;
    usec_t due;    /* USEC_INFINITY: only the cycle's own decision */
    usec_t waited; /* the longest time from a start to its decision */
    usec_t started;
} Decider;

static void decide(Decider *d, usec_t at)
{
    if (d->due != USEC_INFINITY)
        d->waited = MAX(d->waited, at - d->started);
    d->interval = decision_interval_next(d->interval, at - d->decided_at, d->n_starts, CYCLE);
    d->decided_at = at;
    d->n_starts = 0;
    d->due = USEC_INFINITY;
    d->n_decisions++;
}

/* Decides whenever a decision is due before `at`. */
static void wait_until(Decider *d, usec_t at)
{
    while (MIN(d->due, d->decided_at + CYCLE) <= at)
        decide(d, MIN(d->due, d->decided_at + CYCLE));
}

static void start(Decider *d, usec_t at)
{
    wait_until(d, at);
    if (d->due == USEC_INFINITY)
        d->started = at;
    d->n_starts++;
    d->due = MAX(at, d->decided_at + d->interval);
}

/* Lets an application start every `period` for `span`, beginning at `from`. Returns the number of
 * decisions. */
static uint64_t run(Decider *d, usec_t from, usec_t span, usec_t period)
{
    uint64_t before;

    wait_until(d, from);
    before = d->n_decisions;
    for (usec_t at = from; at < from + span; at += period)
        start(d, at);
    wait_until(d, from + span);
    return d->n_decisions - before;
}

static Decider decider(void)
{
    return (Decider){.interval = DECISION_INTERVAL_MIN_USEC, .due = USEC_INFINITY};
}

static void starts_that_do_not_stop(void **state)
{
    const usec_t periods[] = {20 * USEC_PER_MSEC, 200 * USEC_PER_MSEC, 300 * USEC_PER_MSEC,
                              900 * USEC_PER_MSEC, 3 * USEC_PER_SEC};

    for (size_t i = 0; i < ELEMENTSOF(periods); i++) {
        Decider d = decider();
        usec_t later;

        /* 4 s / 250 ms = 16: four doublings, and then one decision in four seconds, or with every
         * second start if the starts are three seconds apart */
        assert_in_range(run(&d, CYCLE, 1000 * USEC_PER_SEC, periods[i]), 165, 260);
        assert_true(d.interval == DECISION_INTERVAL_MAX_USEC);
        assert_true(d.waited <= DECISION_INTERVAL_MAX_USEC);
        /* After a quiet cycle a start leads to a decision at once. */
        later = d.decided_at + 2 * CYCLE + USEC_PER_SEC;
        wait_until(&d, later);
        d.waited = 0;
        run(&d, later, USEC_PER_SEC, USEC_PER_SEC);
        assert_true(d.waited == 0);
    }
}

/* A status bar that executes a script every ten seconds delays no decision, not even after a burst
 * of starts. */
static void rare_starts(void **state)
{
    Decider d = decider();

    assert_int_equal(run(&d, CYCLE / 2, 1000 * USEC_PER_SEC, 10 * USEC_PER_SEC), 100);
    assert_true(d.waited == 0);
    run(&d, 1100 * USEC_PER_SEC, 60 * USEC_PER_SEC, 50 * USEC_PER_MSEC);
    assert_true(d.interval > DECISION_INTERVAL_MIN_USEC);
    run(&d, 1160 * USEC_PER_SEC, 2 * CYCLE, 10 * USEC_PER_SEC);
    d.waited = 0;
    assert_int_equal(run(&d, 1300 * USEC_PER_SEC, 1000 * USEC_PER_SEC, 10 * USEC_PER_SEC), 100);
    assert_true(d.waited == 0);
}

/* A user starts three applications, one second after the other. */
static void a_few_starts(void **state)
{
    Decider d = decider();

    assert_int_equal(run(&d, CYCLE / 2, 3 * USEC_PER_SEC, USEC_PER_SEC), 3);
    assert_true(d.waited == 0);
}

static void bounds(void **state)
{
    const usec_t min = DECISION_INTERVAL_MIN_USEC;

    assert_true(decision_interval_next(0, 0, 0, CYCLE) == min);
    assert_true(decision_interval_next(0, 0, 1, CYCLE) == min);
    assert_true(decision_interval_next(min, 0, UINT64_MAX, CYCLE) == 2 * min);
    assert_true(decision_interval_next(min, min, 1, 0) == min);
    assert_true(decision_interval_next(min, min, 1, USEC_PER_MSEC) == min);
    assert_true(decision_interval_next(CYCLE, CYCLE, 9, 2 * CYCLE) == DECISION_INTERVAL_MAX_USEC);
    assert_true(decision_interval_next(min, min, 1, USEC_PER_SEC / 3) == USEC_PER_SEC / 3);
    /* Cycle= has become shorter. */
    assert_true(decision_interval_next(CYCLE, CYCLE, 9, USEC_PER_SEC) == USEC_PER_SEC);
    assert_true(decision_interval_next(CYCLE, CYCLE, 9, USEC_INFINITY) ==
                DECISION_INTERVAL_MAX_USEC);
    assert_true(decision_interval_next(USEC_INFINITY, 0, 9, USEC_INFINITY) ==
                DECISION_INTERVAL_MAX_USEC);
    assert_true(decision_interval_next(CYCLE, DECISION_RARE_USEC, 1, CYCLE) == min);
    assert_true(decision_interval_next(CYCLE, DECISION_RARE_USEC - 1, 1, CYCLE) ==
                DECISION_INTERVAL_MAX_USEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(starts_that_do_not_stop),
            cmocka_unit_test(rare_starts),
            cmocka_unit_test(a_few_starts),
            cmocka_unit_test(bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
