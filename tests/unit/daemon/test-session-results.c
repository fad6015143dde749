/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/session-results.h"

#include "trace/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* The results of a prefetcher with replays and control starts of the applications `first`, … */
static SessionResults results(uint64_t first, size_t n_replays, size_t n_uses)
{
    SessionResults r = SESSION_RESULTS_EMPTY;

    for (size_t i = 0; i < n_replays; i++)
        launch_log_add(&r.launch_log, &(LaunchReplay){{1000, first + i}, first + i, first + i, 1});
    for (size_t i = 0; i < n_uses; i++) {
        RangeSet pages = {0};
        LaunchUse *u = &r.launch_uses.items[r.launch_uses.n++];

        u->key = (LaunchKey){1000, first + i};
        assert_int_equal(range_set_insert(&pages, 0, 4096), 0);
        assert_int_equal(launch_use_add(u, "uuid", 1, &pages), 0);
    }
    return r;
}

static void nothing_is_lost(void **state)
{
    SessionResults all = SESSION_RESULTS_EMPTY, one = results(100, 2, 1), two = results(200, 3, 2);

    one.flags = TRACE_REPLAYED;
    one.launches_since = 20;
    two.flags = TRACE_FOLLOWED;
    two.launches_since = 30;
    session_results_add(&all, &one);
    session_results_add(&all, &two);
    assert_int_equal(all.flags, TRACE_REPLAYED | TRACE_FOLLOWED);
    assert_int_equal(all.launches_since, 20);
    assert_int_equal(all.launch_log.n, 5);
    assert_non_null(launch_log_find(&all.launch_log, (LaunchKey){1000, 101}, 0, 1000));
    assert_non_null(launch_log_find(&all.launch_log, (LaunchKey){1000, 202}, 0, 1000));
    assert_int_equal(all.launch_uses.n, 3);
    assert_true(launch_uses_have(&all.launch_uses, (LaunchKey){1000, 100}));
    assert_true(launch_uses_have(&all.launch_uses, (LaunchKey){1000, 201}));
    assert_int_equal(two.launch_uses.n, 0);
    assert_int_equal(two.flags, 0);

    /* A session whose last prefetcher replays no starts. */
    one = SESSION_RESULTS_EMPTY;
    session_results_add(&all, &one);
    assert_true(all.launches_since == USEC_INFINITY);
    assert_int_equal(all.launch_log.n, 5);
    session_results_done(&all);
    assert_true(all.launches_since == USEC_INFINITY);
    assert_int_equal(all.launch_uses.n, 0);
}

/* More than is kept: the latest replays and the first control starts stay. */
static void results_are_bounded(void **state)
{
    SessionResults all = SESSION_RESULTS_EMPTY;

    for (uint64_t i = 0; i < 3; i++) {
        SessionResults more = results(1000 * i, LAUNCH_LOG_MAX + 10, LAUNCH_USES_MAX - 10);

        session_results_add(&all, &more);
    }
    assert_null(launch_log_find(&all.launch_log, (LaunchKey){1000, 1100}, 0, 10000));
    assert_null(launch_log_find(&all.launch_log, (LaunchKey){1000, 2009}, 0, 10000));
    assert_non_null(launch_log_find(&all.launch_log, (LaunchKey){1000, 2010}, 0, 10000));
    assert_non_null(launch_log_find(&all.launch_log, (LaunchKey){1000, 2137}, 0, 10000));
    assert_int_equal(all.launch_uses.n, LAUNCH_USES_MAX);
    assert_true(launch_uses_have(&all.launch_uses, (LaunchKey){1000, 1009}));
    assert_false(launch_uses_have(&all.launch_uses, (LaunchKey){1000, 1010}));
    session_results_done(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(nothing_is_lost),
            cmocka_unit_test(results_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
