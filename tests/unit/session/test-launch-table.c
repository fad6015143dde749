/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "session/launch-table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SEC USEC_PER_SEC

/* Notes an execution by a process without known ancestors, whose number no other start has. */
static bool note(LaunchTable *t, LaunchKey key, usec_t now)
{
    static uint32_t pid = 10000;

    pid++;
    return launch_table_note(t, key, &pid, 1, now);
}

static void executions_within_two_seconds_are_one_start(void **state)
{
    const LaunchKey gimp = {1000, 7}, other_user = {1001, 7}, other = {1000, 8};
    LaunchTable t = {0};

    (void)state;
    assert_true(note(&t, gimp, 10 * SEC));
    assert_false(note(&t, gimp, 11 * SEC));
    assert_true(note(&t, other_user, 11 * SEC));
    assert_true(note(&t, other, 11 * SEC));
    /* Each execution prolongs the start, so that a loop of executions stays one start. */
    assert_false(note(&t, gimp, 12900 * USEC_PER_MSEC));
    assert_false(note(&t, gimp, 14 * SEC));
    assert_true(note(&t, gimp, 16 * SEC));
}

static void repeated_executions_are_not_examined(void **state)
{
    const LaunchKey gimp = {1000, 7}, other_user = {1001, 7}, off = {1000, 8};
    LaunchTable t = {0};

    (void)state;
    assert_false(launch_table_repeats(&t, gimp, SEC));
    assert_true(note(&t, gimp, 10 * SEC));
    assert_true(launch_table_repeats(&t, gimp, 11 * SEC));
    assert_false(launch_table_repeats(&t, other_user, 11 * SEC));
    assert_true(
            launch_table_repeats(&t, gimp, 12900 * USEC_PER_MSEC)); /* each prolongs the start */
    assert_false(note(&t, gimp, 14 * SEC));
    assert_false(launch_table_repeats(&t, gimp, 16 * SEC));
    launch_table_pass(&t, off, 20 * SEC);
    assert_true(launch_table_repeats(&t, off, 21 * SEC));
    assert_false(launch_table_repeats(&t, off, 22 * SEC)); /* the pack may be another one now */
    for (uint64_t i = 0; i < LAUNCH_PASSED_MAX; i++)
        launch_table_pass(&t, (LaunchKey){1000, 100 + i}, 22 * SEC);
    assert_true(launch_table_repeats(&t, (LaunchKey){1000, 100}, 23 * SEC));
    launch_table_pass(&t, off, 22 * SEC);
    assert_false(launch_table_repeats(&t, (LaunchKey){1000, 100}, 23 * SEC));
}

static void what_a_starting_application_executes_belongs_to_its_start(void **state)
{
    const LaunchKey gimp = {1000, 7}, plugin = {1000, 8}, second = {1000, 9}, other = {1001, 8};
    const uint32_t panel = 50, start = 100, in_plugin[] = {102, 101, start, panel};
    const uint32_t in_gimp[] = {101, start, panel}, from_panel[] = {103, panel};
    LaunchTable t = {0};

    (void)state;
    assert_true(launch_table_note(&t, gimp, &start, 1, 10 * SEC));
    assert_false(launch_table_note(&t, plugin, in_gimp, 3, 11 * SEC));
    assert_false(launch_table_note(&t, second, in_plugin, 4, 11 * SEC));
    /* A wrapper that executes the real program in its own process */
    assert_false(launch_table_note(&t, second, &start, 1, 12 * SEC));
    /* Another child of the panel, and a process of another user, are starts of their own. */
    assert_true(launch_table_note(&t, (LaunchKey){1000, 10}, from_panel, 2, 12 * SEC));
    assert_true(launch_table_note(&t, other, in_gimp, 3, 12 * SEC));
}

static void a_start_ends_after_a_gap_and_after_half_a_minute(void **state)
{
    const LaunchKey terminal = {1000, 7};
    const uint32_t start = 100, child[] = {101, start};
    LaunchTable t = {0};

    (void)state;
    assert_true(launch_table_note(&t, terminal, &start, 1, 100 * SEC));
    assert_true(launch_table_note(&t, (LaunchKey){1000, 8}, child, 2,
                                  100 * SEC + LAUNCH_HELPER_GAP_USEC + 1));
    assert_true(launch_table_note(&t, terminal, &start, 1, 200 * SEC));
    for (uint64_t i = 1; i <= 6; i++)
        assert_false(
                launch_table_note(&t, (LaunchKey){1000, 100 + i}, child, 2, (200 + 5 * i) * SEC));
    assert_true(launch_table_note(&t, (LaunchKey){1000, 9}, child, 2, 231 * SEC));
}

static void the_oldest_key_is_forgotten(void **state)
{
    LaunchTable t = {0};

    (void)state;
    for (uint64_t i = 0; i <= LAUNCH_RECENT_MAX; i++)
        assert_true(note(&t, (LaunchKey){1000, i}, 10 * SEC + i));
    assert_true(note(&t, (LaunchKey){1000, 0}, 10 * SEC + 100));
    assert_false(note(&t, (LaunchKey){1000, LAUNCH_RECENT_MAX}, 10 * SEC + 101));
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

static void a_set_that_was_read_is_known(void **state)
{
    LaunchTable t = {0};

    assert_false(launch_table_was_read(&t, (LaunchKey){0, 0}));
    for (uint64_t i = 1; i <= LAUNCH_READ_MAX; i++) {
        assert_false(launch_table_was_read(&t, (LaunchKey){1000, i}));
        launch_table_note_read(&t, (LaunchKey){1000, i});
        launch_table_note_read(&t,
                               (LaunchKey){1000, 1}); /* it is known, and takes no further entry */
    }
    for (uint64_t i = 1; i <= LAUNCH_READ_MAX; i++)
        assert_true(launch_table_was_read(&t, (LaunchKey){1000, i}));
    assert_false(launch_table_was_read(&t, (LaunchKey){1001, 1}));
    launch_table_note_read(&t, (LaunchKey){1001, 1});
    assert_true(launch_table_was_read(&t, (LaunchKey){1001, 1}));
    assert_false(launch_table_was_read(&t, (LaunchKey){1000, 1}));
    assert_true(launch_table_was_read(&t, (LaunchKey){1000, 2}));
}

static void a_set_must_fit_into_memory(void **state)
{
    (void)state;
    assert_true(launch_fits(50, 100, 10, 10));
    assert_false(launch_fits(51, 100, 0, 10));
    assert_false(launch_fits(50, 100, 10.1, 10));
}

/* If two users read equally many sets, a further start stops a set of the user who begins it, also
 * if a set of the other user is older. */
static void a_start_stops_no_set_of_a_user_with_fewer(void **state)
{
    LaunchTable t = {0};
    int stop, first = -1;

    (void)state;
    for (unsigned i = 0; i < LAUNCH_SETS_MAX; i++) {
        int slot = launch_table_begin(&t, i < 2 ? 1000 : 1001, (i + 1) * SEC, &stop);

        assert_true(slot >= 0 && stop < 0);
        first = i == 2 ? slot : first;
    }
    assert_true(launch_table_begin(&t, 1001, 9 * SEC, &stop) >= 0);
    assert_int_equal(stop, first);
}

/* However many applications one user starts, the starts of another stay noted. */
static void one_users_starts_are_not_forgotten_for_anothers(void **state)
{
    const LaunchKey gimp = {1001, 7};
    const uint32_t start = 100, child[] = {101, start};
    LaunchTable t = {0};

    (void)state;
    assert_true(launch_table_note(&t, gimp, &start, 1, 10 * SEC));
    for (uint64_t i = 0; i < 3 * LAUNCH_RECENT_MAX; i++)
        assert_true(note(&t, (LaunchKey){1000, 100 + i}, 10 * SEC + 1 + i));
    assert_false(note(&t, gimp, 11 * SEC));
    assert_false(launch_table_note(&t, (LaunchKey){1001, 8}, child, 2, 12 * SEC));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(executions_within_two_seconds_are_one_start),
            cmocka_unit_test(repeated_executions_are_not_examined),
            cmocka_unit_test(what_a_starting_application_executes_belongs_to_its_start),
            cmocka_unit_test(a_start_ends_after_a_gap_and_after_half_a_minute),
            cmocka_unit_test(the_oldest_key_is_forgotten),
            cmocka_unit_test(a_fifth_set_stops_the_oldest_and_nothing_queues_up),
            cmocka_unit_test(one_users_starts_leave_those_of_others),
            cmocka_unit_test(a_start_stops_no_set_of_a_user_with_fewer),
            cmocka_unit_test(one_users_starts_are_not_forgotten_for_anothers),
            cmocka_unit_test(a_set_that_was_read_is_known),
            cmocka_unit_test(a_set_must_fit_into_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
