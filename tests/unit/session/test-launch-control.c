/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "session/launch-control.h"

#include "base/clock.h"
#include "base/uid.h"
#include "session/prefetch-hold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static const VolumeTable no_volumes;

/* Reports a control start with a set without files. Returns true if it is observed. */
static bool is_observed(LaunchControls *c, uint32_t uid, uint64_t application, usec_t at)
{
    char *buf = calloc(1, sizeof(PackHeader));
    Pack p = {.header = (const PackHeader *)buf};
    bool observed;

    assert_non_null(buf);
    launch_controls_begin(c, (LaunchKey){uid, application}, &no_volumes, &buf, &p, at);
    observed = !buf;
    free(buf);
    return observed;
}

/* Does the same, and ends the observation. */
static bool is_observed_to_its_end(LaunchControls *c, uint32_t uid, uint64_t application,
                                   bool spoilt)
{
    bool observed = is_observed(c, uid, application, 1);

    if (spoilt)
        launch_controls_spoil(c);
    assert_int_equal(launch_controls_end(c, &no_volumes, USEC_INFINITY, USEC_INFINITY),
                     USEC_INFINITY);
    return observed;
}

static void a_start_of_another_user_holds_nothing(void **state)
{
    LaunchControls *c;
    usec_t now = clock_now(CLOCK_MONOTONIC);

    (void)state;
    assert_int_equal(launch_controls_new("/", 1000, &c), 0);
    assert_false(is_observed(c, 1001, 7, now));
    assert_false(is_observed(c, 0, 7, now));
    assert_false(prefetch_is_held());
    assert_true(is_observed(c, 1000, 7, now));
    assert_true(prefetch_is_held());
    launch_controls_free(c);
}

static void each_user_has_a_part_of_the_places(void **state)
{
    LaunchControls *c;

    (void)state;
    assert_int_equal(launch_controls_new("/", UID_INVALID, &c), 0);
    for (uint64_t i = 1; i <= 10; i++)
        assert_int_equal(is_observed(c, 1001, i, 1), i <= LAUNCH_CONTROLS_MAX / LAUNCH_USER_PART);
    assert_true(is_observed(c, 1000, 1, 1));
    launch_controls_free(c);
}

static void each_user_has_a_part_of_the_results(void **state)
{
    LaunchControls *c;
    LaunchUses uses;

    (void)state;
    assert_int_equal(launch_controls_new("/", UID_INVALID, &c), 0);
    for (uint64_t i = 1; i <= 2 * LAUNCH_USES_MAX; i++)
        assert_int_equal(is_observed_to_its_end(c, 1001, i, false),
                         i <= LAUNCH_USES_MAX / LAUNCH_USER_PART);
    assert_true(is_observed_to_its_end(c, 1000, 1, false));
    launch_controls_take(c, &uses);
    assert_int_equal(uses.n, LAUNCH_USES_MAX / LAUNCH_USER_PART + 1);
    launch_uses_done(&uses);
    launch_controls_free(c);
}

/* Starts of which the observation fails count, too. */
static void starts_that_do_not_count_are_bounded(void **state)
{
    unsigned n = 0, n_other = 0;
    LaunchControls *c;

    (void)state;
    assert_int_equal(launch_controls_new("/", 1000, &c), 0);
    for (unsigned i = 0; i < 2 * LAUNCH_BEGUN_MAX; i++)
        n += is_observed_to_its_end(c, 1000, 7, true);
    assert_int_equal(n, LAUNCH_BEGUN_MAX);
    assert_int_equal(launch_controls_n(c), 0);
    launch_controls_free(c);

    assert_int_equal(launch_controls_new("/", UID_INVALID, &c), 0);
    for (unsigned i = 0; i < 2 * LAUNCH_BEGUN_MAX; i++)
        n_other += is_observed_to_its_end(c, 1001, 7, true);
    assert_int_equal(n_other, LAUNCH_BEGUN_MAX / LAUNCH_USER_PART);
    assert_true(is_observed_to_its_end(c, 1000, 7, false));
    launch_controls_free(c);
}

/* The user of a session has all places of it. */
static void a_session_of_one_user(void **state)
{
    LaunchControls *c;

    (void)state;
    assert_int_equal(launch_controls_new("/", 1000, &c), 0);
    for (uint64_t i = 1; i <= 2 * LAUNCH_USES_MAX; i++)
        assert_int_equal(is_observed_to_its_end(c, 1000, i, false), i <= LAUNCH_USES_MAX);
    assert_int_equal(launch_controls_n(c), LAUNCH_USES_MAX);
    launch_controls_free(c);
}

/* Tasks wait for I/O until 4 s after the first start. The second one comes later, and is over
 * later. */
static void a_start_ends_when_the_disk_is_quiet(void **state)
{
    static const usec_t ms = USEC_PER_MSEC, s = USEC_PER_SEC;
    LaunchControls *c;

    (void)state;
    assert_int_equal(launch_controls_new("/", 1000, &c), 0);
    assert_int_equal(launch_controls_end(c, &no_volumes, s, 0), USEC_INFINITY);
    assert_false(launch_controls_observe(c));
    assert_true(is_observed(c, 1000, 7, s));
    assert_true(launch_controls_observe(c));
    assert_int_equal(launch_controls_end(c, &no_volumes, s, 70 * ms), s + LAUNCH_QUIET_LOOK_USEC);
    for (usec_t at = 1; at <= 4; at++)
        (void)launch_controls_end(c, &no_volumes, (1 + at) * s, (70 + 4 * at) * ms);
    assert_true(is_observed(c, 1000, 8, 6 * s));
    (void)launch_controls_end(c, &no_volumes, 6 * s, 88 * ms); /* too little to count */
    assert_int_equal(launch_controls_n(c), 0);
    (void)launch_controls_end(c, &no_volumes, 8 * s - 1, 88 * ms);
    assert_int_equal(launch_controls_n(c), 0);
    assert_int_equal(launch_controls_end(c, &no_volumes, 8 * s, 88 * ms),
                     8 * s + LAUNCH_QUIET_LOOK_USEC);
    assert_int_equal(launch_controls_n(c), 1);
    assert_int_equal(launch_controls_end(c, &no_volumes, 9 * s, 88 * ms), USEC_INFINITY);
    assert_int_equal(launch_controls_n(c), 2);
    assert_false(launch_controls_observe(c));
    launch_controls_free(c);
}

/* The prefetch thread waits only as long as a start is observed. The first start is over before the
 * second one. */
static void a_start_that_is_over_holds_nothing(void **state)
{
    static const usec_t s = USEC_PER_SEC;
    usec_t now = clock_now(CLOCK_MONOTONIC);
    LaunchControls *c;

    (void)state;
    assert_int_equal(launch_controls_new("/", 1000, &c), 0);
    assert_true(is_observed(c, 1000, 7, now));
    (void)launch_controls_end(c, &no_volumes, now, 0);
    assert_true(is_observed(c, 1000, 8, now + 2 * s));
    (void)launch_controls_end(c, &no_volumes, now + 2 * s, 0);
    (void)launch_controls_end(c, &no_volumes, now + 5 * s - 1, 0);
    assert_int_equal(launch_controls_n(c), 1);
    assert_true(prefetch_is_held());
    (void)launch_controls_end(c, &no_volumes, now + 5 * s, 0);
    assert_int_equal(launch_controls_n(c), 2);
    assert_false(prefetch_is_held());

    /* An observation that cannot count any more holds nothing, either. */
    assert_true(is_observed(c, 1000, 9, now));
    launch_controls_spoil(c);
    (void)launch_controls_end(c, &no_volumes, now, 0);
    assert_false(prefetch_is_held());

    assert_true(is_observed(c, 1000, 10, now));
    assert_true(prefetch_is_held());
    launch_controls_free(c);
    assert_false(prefetch_is_held());
}

/* On a machine whose disks are never quiet, or without pressure stall information, a start ends
 * when its time is over. */
static void a_start_ends_after_its_time(void **state)
{
    static const usec_t s = USEC_PER_SEC;
    LaunchControls *c;

    (void)state;
    assert_int_equal(launch_controls_new("/", 1000, &c), 0);
    assert_true(is_observed(c, 1000, 7, s));
    for (usec_t at = 1; at < 30; at++)
        (void)launch_controls_end(c, &no_volumes, (1 + at) * s, at * s);
    assert_int_equal(launch_controls_n(c), 0);
    assert_int_equal(launch_controls_end(c, &no_volumes, 31 * s, 30 * s), USEC_INFINITY);
    assert_int_equal(launch_controls_n(c), 1);
    assert_true(is_observed(c, 1000, 8, s));
    assert_int_equal(launch_controls_end(c, &no_volumes, 31 * s - 1, USEC_INFINITY), 31 * s);
    assert_int_equal(launch_controls_end(c, &no_volumes, 31 * s, USEC_INFINITY), USEC_INFINITY);
    assert_int_equal(launch_controls_n(c), 2);
    launch_controls_free(c);
}

#define RANGES 500000U

/* A pack of one file that lies backwards on the device. */
static void a_fragmented_file_takes_no_time(void **state)
{
    PackHeader *h = calloc(1, sizeof(PackHeader) + RANGES * sizeof(PackData));
    PackData *data;
    LaunchControls *c;
    char *buf = (char *)h;
    Pack p = {.header = h};
    usec_t begin;

    (void)state;
    assert_non_null(h);
    data = (PackData *)(h + 1);
    h->n_files = htole32(1);
    h->n_data = htole32(RANGES);
    for (unsigned i = 0; i < RANGES; i++) {
        data[i].offset = htole64((uint64_t)(RANGES - i) * 65536);
        data[i].length = htole64(4096);
    }
    p.data = data;
    assert_int_equal(launch_controls_new("/", 1000, &c), 0);
    begin = clock_now(CLOCK_MONOTONIC);
    launch_controls_begin(c, (LaunchKey){1000, 7}, &no_volumes, &buf, &p, begin);
    assert_in_range(clock_now(CLOCK_MONOTONIC) - begin, 0, 10 * USEC_PER_SEC);
    assert_null(buf);
    launch_controls_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_start_of_another_user_holds_nothing),
            cmocka_unit_test(each_user_has_a_part_of_the_places),
            cmocka_unit_test(each_user_has_a_part_of_the_results),
            cmocka_unit_test(starts_that_do_not_count_are_bounded),
            cmocka_unit_test(a_session_of_one_user),
            cmocka_unit_test(a_start_ends_when_the_disk_is_quiet),
            cmocka_unit_test(a_start_that_is_over_holds_nothing),
            cmocka_unit_test(a_start_ends_after_its_time),
            cmocka_unit_test(a_fragmented_file_takes_no_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
