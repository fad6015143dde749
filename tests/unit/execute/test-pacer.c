/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "execute/pacer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Submits requests of one byte until the pacer refuses one, and returns their number. */
static unsigned submit_all(Pacer *p)
{
    unsigned n = 0;

    for (; pacer_may_submit(p, 1); n++)
        pacer_submitted(p, 1);
    return n;
}

static void the_window_limits_bytes_and_requests(void **state)
{
    Pacer p;

    (void)state;
    pacer_init(&p, 100, 3);
    assert_int_equal(submit_all(&p), 3);
    pacer_completed(&p, 1);
    assert_false(pacer_may_submit(&p, 99));
    assert_true(pacer_may_submit(&p, 98));
    /* With nothing in flight, a request larger than the window may be submitted. */
    pacer_init(&p, 100, 0);
    assert_true(pacer_may_submit(&p, 1000));
    pacer_submitted(&p, 1000);
    assert_false(pacer_may_submit(&p, 1));
}

static void a_narrower_window_waits_for_what_is_in_flight(void **state)
{
    Pacer p;

    (void)state;
    pacer_init(&p, 1000, 6);
    assert_int_equal(submit_all(&p), 6);
    pacer_limit(&p, 2000, 2);
    for (int i = 0; i < 4; i++) {
        pacer_completed(&p, 1);
        assert_false(pacer_may_submit(&p, 1));
    }
    pacer_completed(&p, 1);
    assert_int_equal(submit_all(&p), 1);
    /* The window never grows. */
    pacer_limit(&p, 1000, 6);
    assert_false(pacer_may_submit(&p, 1));
    pacer_limit(&p, 1, 0);
    pacer_completed(&p, 1);
    pacer_completed(&p, 1);
    assert_int_equal(submit_all(&p), 1);
}

static void a_sweep_begins_with_one_request(void **state)
{
    Pacer p;

    (void)state;
    pacer_init(&p, 1000, 6);
    assert_false(pacer_is_restarting(&p));
    pacer_restart(&p);
    assert_int_equal(submit_all(&p), 1);
    assert_true(pacer_is_restarting(&p));
    pacer_completed(&p, 1);
    assert_false(pacer_is_restarting(&p));
    assert_int_equal(submit_all(&p), 6);
}

static void requests_before_the_restart_end_first(void **state)
{
    Pacer p;

    (void)state;
    pacer_init(&p, 1000, 8);
    assert_int_equal(submit_all(&p), 8);
    pacer_restart(&p);
    for (unsigned i = 0; i < 7; i++) {
        pacer_completed(&p, 1);
        assert_false(pacer_may_submit(&p, 1));
    }
    pacer_completed(&p, 1);
    assert_int_equal(submit_all(&p), 1);
}

static void only_one_request_is_the_first_of_a_sweep(void **state)
{
    Pacer p;

    (void)state;
    pacer_init(&p, 1000, 6);
    assert_false(pacer_begins_sweep(&p));
    pacer_submitted(&p, 1);
    pacer_submitted(&p, 1);
    pacer_restart(&p);
    assert_true(pacer_begins_sweep(&p));
    pacer_completed(&p, 1);
    assert_true(pacer_begins_sweep(&p));
    pacer_completed(&p, 1);
    assert_true(pacer_begins_sweep(&p));
    pacer_submitted(&p, 1);
    assert_false(pacer_begins_sweep(&p));
    pacer_completed(&p, 1);
    assert_false(pacer_begins_sweep(&p));
    /* With a window of one request, each request is alone, and none has to be short. */
    pacer_init(&p, 1000, 1);
    pacer_restart(&p);
    assert_false(pacer_begins_sweep(&p));
}

/* A sweep ends, single ranges follow, and another sweep begins below the last of them. */
static void the_head_is_followed_between_sweeps(void **state)
{
    Pacer p;

    (void)state;
    pacer_init(&p, 1000, 6);
    pacer_follow(&p, 50, true);
    assert_true(pacer_is_restarting(&p)); /* the head of the disk is not known */
    assert_int_equal(submit_all(&p), 1);
    pacer_completed(&p, 1);
    pacer_follow(&p, 93, true);
    pacer_follow(&p, 900, false);
    pacer_follow(&p, 30, false);
    pacer_follow(&p, 800, false);
    assert_false(pacer_is_restarting(&p));
    pacer_follow(&p, 150, true);
    assert_true(pacer_is_restarting(&p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_window_limits_bytes_and_requests),
            cmocka_unit_test(a_narrower_window_waits_for_what_is_in_flight),
            cmocka_unit_test(a_sweep_begins_with_one_request),
            cmocka_unit_test(requests_before_the_restart_end_first),
            cmocka_unit_test(only_one_request_is_the_first_of_a_sweep),
            cmocka_unit_test(the_head_is_followed_between_sweeps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
