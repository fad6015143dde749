/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "session/launch-table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SEC USEC_PER_SEC

static void executions_within_two_seconds_are_one_start(void **state)
{
    const LaunchKey gimp = {1000, 7}, other_user = {1001, 7}, other = {1000, 8};
    LaunchTable t = {0};

    (void)state;
    assert_true(launch_table_note(&t, gimp, 10 * SEC));
    assert_false(launch_table_note(&t, gimp, 11 * SEC));
    assert_true(launch_table_note(&t, other_user, 11 * SEC));
    assert_true(launch_table_note(&t, other, 11 * SEC));
    /* Each execution prolongs the start, so that a loop of executions stays one start. */
    assert_false(launch_table_note(&t, gimp, 12900 * USEC_PER_MSEC));
    assert_false(launch_table_note(&t, gimp, 14 * SEC));
    assert_true(launch_table_note(&t, gimp, 16 * SEC));
}

static void the_oldest_key_is_forgotten(void **state)
{
    LaunchTable t = {0};

    (void)state;
    for (uint64_t i = 0; i <= LAUNCH_RECENT_MAX; i++)
        assert_true(launch_table_note(&t, (LaunchKey){1000, i}, 10 * SEC + i));
    assert_true(launch_table_note(&t, (LaunchKey){1000, 0}, 10 * SEC + 100));
    assert_false(launch_table_note(&t, (LaunchKey){1000, LAUNCH_RECENT_MAX}, 10 * SEC + 101));
}

static void a_fifth_set_stops_the_oldest_and_nothing_queues_up(void **state)
{
    LaunchTable t = {0};
    int slots[LAUNCH_SLOTS], stop;

    (void)state;
    for (unsigned i = 0; i < LAUNCH_SETS_MAX; i++) {
        slots[i] = launch_table_begin(&t, 1000 + i, (1 + i) * SEC, &stop);
        assert_true(slots[i] >= 0);
        assert_int_equal(stop, -1);
    }
    /* Each further start stops the oldest set that is being read. */
    for (unsigned i = LAUNCH_SETS_MAX; i < LAUNCH_SLOTS; i++) {
        slots[i] = launch_table_begin(&t, 1000 + i, (1 + i) * SEC, &stop);
        assert_true(slots[i] >= 0);
        assert_int_equal(stop, slots[i - LAUNCH_SETS_MAX]);
        assert_int_equal(t.slots[stop].state, LAUNCH_STOPPING);
    }
    assert_int_equal(launch_table_begin(&t, 2000, 100 * SEC, &stop), -1);
    assert_int_equal(stop, -1);
    /* A slot whose reads have ended can be used again. */
    launch_table_end(&t, slots[0]);
    assert_int_equal(launch_table_begin(&t, 2000, 101 * SEC, &stop), slots[0]);
    assert_int_equal(stop, slots[LAUNCH_SETS_MAX]);
}

static void one_users_starts_leave_those_of_others(void **state)
{
    LaunchTable t = {0};
    int victims, stop;

    (void)state;
    victims = launch_table_begin(&t, 1000, SEC, &stop);
    for (unsigned i = 0; i < 100; i++) {
        (void)launch_table_begin(&t, 1001, (2 + i) * SEC, &stop);
        assert_int_not_equal(stop, victims);
    }
    assert_int_equal(t.slots[victims].state, LAUNCH_READING);
    /* The many starts of user 1001 leave a slot free. A start of user 1000 stops the oldest set of
     * user 1001. */
    assert_true(launch_table_begin(&t, 1000, 200 * SEC, &stop) >= 0);
    assert_int_equal(t.slots[stop].uid, 1001);
    assert_int_equal(t.slots[victims].state, LAUNCH_READING);
}

static void a_set_must_fit_into_memory(void **state)
{
    (void)state;
    assert_true(launch_fits(50, 100, 10, 10));
    assert_false(launch_fits(51, 100, 0, 10));
    assert_false(launch_fits(50, 100, 10.1, 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(executions_within_two_seconds_are_one_start),
            cmocka_unit_test(the_oldest_key_is_forgotten),
            cmocka_unit_test(a_fifth_set_stops_the_oldest_and_nothing_queues_up),
            cmocka_unit_test(one_users_starts_leave_those_of_others),
            cmocka_unit_test(a_set_must_fit_into_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
