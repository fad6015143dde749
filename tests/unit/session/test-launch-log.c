/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "session/launch-log.h"

#include "base/uid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void add(LaunchLog *l, LaunchKey key, usec_t begin)
{
    launch_log_add(l, &(LaunchReplay){.key = key, .begin = begin, .end = begin + 7});
}

/* Returns the begin of the replay that is found, or 0. */
static usec_t find(const LaunchLog *l, LaunchKey key, usec_t from, usec_t to)
{
    const LaunchReplay *r = launch_log_find(l, key, from, to);

    return r ? r->begin : 0;
}

static void the_first_replay_of_the_start_is_found(void **state)
{
    const LaunchKey gimp = {1000, 7}, other_user = {1001, 7}, other = {1000, 8};
    LaunchLog l = {0};

    (void)state;
    assert_null(launch_log_find(&l, gimp, 0, USEC_INFINITY));
    add(&l, gimp, 500);
    add(&l, other, 100);
    add(&l, other_user, 200);
    add(&l, gimp, 300);
    assert_int_equal(find(&l, gimp, 0, USEC_INFINITY), 300);
    assert_int_equal(find(&l, gimp, 300, 300), 300);
    assert_int_equal(find(&l, gimp, 301, 499), 0);
    assert_int_equal(find(&l, gimp, 301, 500), 500);
    /* The session of several users */
    assert_int_equal(find(&l, (LaunchKey){UID_INVALID, 7}, 0, USEC_INFINITY), 200);
}

static void the_newest_replays_are_kept(void **state)
{
    const LaunchKey gimp = {1000, 7};
    LaunchLog l = {0};

    (void)state;
    for (size_t i = 1; i <= LAUNCH_LOG_MAX; i++)
        add(&l, gimp, i);
    assert_int_equal(find(&l, gimp, 0, USEC_INFINITY), 1);
    for (size_t i = 1; i <= 10; i++)
        add(&l, gimp, LAUNCH_LOG_MAX + i);
    assert_int_equal(find(&l, gimp, 0, USEC_INFINITY), 11);
    assert_int_equal(find(&l, gimp, LAUNCH_LOG_MAX + 10, USEC_INFINITY), LAUNCH_LOG_MAX + 10);
    assert_int_equal(l.n, LAUNCH_LOG_MAX + 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_first_replay_of_the_start_is_found),
            cmocka_unit_test(the_newest_replays_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
