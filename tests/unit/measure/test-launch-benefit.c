/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "measure/launch-benefit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define DAY (24 * USEC_PER_HOUR)

/* Adds n starts of an application, one a day and each in a boot of its own. Every fourth start is a
 * control start. */
static void add_starts(LaunchRecord *items, size_t n, size_t step, const char *application,
                       usec_t replayed_usec, usec_t control_usec)
{
    for (size_t i = 0; i < n; i++) {
        LaunchRecord *x = &items[i * step];
        bool control = i % 4 == 2;

        *x = (LaunchRecord){.start_realtime_usec = (i + 1) * DAY,
                            .took_usec = (control ? control_usec : replayed_usec) + i,
                            .replayed = control ? LAUNCH_CONTROL : LAUNCH_REPLAYED,
                            .packages_usec = 1};
        snprintf(x->application, sizeof(x->application), "%s", application);
        snprintf(x->boot_id, sizeof(x->boot_id), "%032zx", i);
    }
}

/* Replay halves the start time of one application. The start time of another, which is ten times as
 * long, becomes 20 % longer. */
static void each_application_has_an_effect_of_its_own(void **state _unused_)
{
    LaunchRecord items[80] = {0};
    LaunchRecords l = {.items = items, .n = ELEMENTSOF(items)};
    _cleanup_launch_benefits_ LaunchBenefits b = {0};
    Benefit good, bad;

    add_starts(items, 40, 2, "/bin/good", 1000000, 2000000);
    add_starts(items + 1, 40, 2, "/bin/bad", 24000000, 20000000);
    assert_int_equal(launch_benefits_compute(&l, 41 * DAY, &b), 0);
    assert_int_equal(b.n, 2);
    good = launch_benefits_find(&b, "/bin/good");
    bad = launch_benefits_find(&b, "/bin/bad");
    assert_true(good.effect.known && fabs(good.effect.saved - 0.5) < 1e-3);
    assert_true(good.effect.saved_low > 0 && !good.harmful);
    assert_true(bad.effect.known && fabs(bad.effect.saved + 0.2) < 1e-3 && bad.harmful);
    /* The first start of each is left out. */
    assert_int_equal(good.effect.n_replayed, 29);
    assert_int_equal(good.effect.n_control, 10);
    assert_int_equal(good.n_left_out, 1);
    assert_int_equal(b.all.n_left_out, 2);
    assert_int_equal(b.all.effect.n_replayed, 58);
    assert_false(launch_benefits_find(&b, "/bin/none").effect.estimated);
    /* With a gain, one of 101 starts is a control start. With harm, it is one of two, because a
     * control start then costs nothing. */
    assert_int_equal(benefit_control_interval(&good, 0, 41 * DAY), 101);
    assert_int_equal(benefit_control_interval(&bad, 0, 41 * DAY), 2);
}

static void starts_from_memory_and_after_upgrades_are_left_out(void **state _unused_)
{
    LaunchRecord items[6] = {0};
    LaunchRecords l = {.items = items, .n = ELEMENTSOF(items)};
    _cleanup_launch_benefits_ LaunchBenefits b = {0};
    static const LaunchExclusion expected[] = {
            LAUNCH_EXCLUSION_FIRST,    LAUNCH_EXCLUSION_AGAIN, LAUNCH_EXCLUSION_NONE,
            LAUNCH_EXCLUSION_UPGRADED, LAUNCH_EXCLUSION_FIRST, LAUNCH_EXCLUSION_NONE,
    };

    add_starts(items, 6, 1, "/bin/x", 1000000, 2000000);
    memcpy(items[1].boot_id, items[0].boot_id, sizeof(items[0].boot_id));
    items[3].packages_usec = items[5].packages_usec = 2;
    items[5].boot_id[0] = 0; /* a line of an older version has no boot ID */
    snprintf(items[4].application, sizeof(items[4].application), "/bin/y");
    assert_int_equal(launch_benefits_compute(&l, 7 * DAY, &b), 0);
    for (size_t i = 0; i < l.n; i++)
        assert_int_equal(b.exclusions[i], expected[i]);
    assert_string_equal(b.items[0].application, "/bin/x");
    assert_null(launch_exclusion_to_string(LAUNCH_EXCLUSION_NONE));
}

static void without_starts_nothing_is_known(void **state _unused_)
{
    _cleanup_launch_benefits_ LaunchBenefits b = {0};
    LaunchRecords l = {0};

    assert_int_equal(launch_benefits_compute(&l, DAY, &b), 0);
    assert_int_equal(b.n, 0);
    assert_false(b.all.effect.known);
}

/* The median of the user's newest starts without replay; the second start of a boot does not count,
 * and neither do starts of others. */
static void a_start_without_replay_takes_the_median(void **state _unused_)
{
    LaunchRecord items[40] = {0}, shared[40];
    LaunchRecords l = {.items = items, .n = ELEMENTSOF(items)};

    add_starts(items, 40, 1, "/bin/x", 1000000, 2000000);
    for (size_t i = 0; i < 20; i++) {
        items[i].uid = 1000;
        items[20 + i].uid = 1001;
        items[20 + i].took_usec *= 10;
    }
    items[15] = items[14]; /* a control start, and another in the same boot */
    items[15].took_usec = 1;
    assert_int_equal(launch_benefits_unreplayed_usec(&l, "/bin/x", 1000), 2000010);
    assert_int_equal(launch_benefits_unreplayed_usec(&l, "/bin/x", 1001), 20000300);
    assert_int_equal(launch_benefits_unreplayed_usec(&l, "/bin/x", 1002), 0);
    assert_int_equal(launch_benefits_unreplayed_usec(&l, "/bin/y", 1000), 0);

    /* In each boot another user starts the application first. */
    for (size_t i = 0; i < 20; i++) {
        shared[2 * i] = shared[2 * i + 1] = items[i];
        shared[2 * i].uid = 1003;
        shared[2 * i].took_usec = 1;
    }
    l.items = shared;
    assert_int_equal(launch_benefits_unreplayed_usec(&l, "/bin/x", 1000), 2000010);
}

static void a_control_start_shows_the_metadata(void **state)
{
    LaunchRecord items[] = {
            {.application = "/bin/x", .uid = 1000, .replayed = LAUNCH_CONTROL},
            {.application = "/bin/x", .uid = 1001, .replayed = LAUNCH_CONTROL},
            {.application = "/bin/x", .uid = 1000, .replayed = LAUNCH_NOT_REPLAYED},
            {.application = "/bin/x", .uid = 1000, .replayed = LAUNCH_REPLAYED},
            {.application = "/bin/y", .uid = 1000, .replayed = LAUNCH_REPLAYED},
    };
    const LaunchRecords l = {.items = items, .n = ELEMENTSOF(items)};

    for (size_t i = 0; i < ELEMENTSOF(items); i++)
        items[i].start_realtime_usec = i + 1;
    assert_int_equal(launch_benefits_observed_until(&l, "/bin/x", 1000, DAY), 1);
    assert_int_equal(launch_benefits_observed_until(&l, "/bin/x", UID_INVALID, DAY), 2);
    assert_int_equal(launch_benefits_observed_until(&l, "/bin/y", 1000, DAY), USEC_INFINITY);
    /* A wrong clock: the start does not count as newer than everything else. */
    items[1].start_realtime_usec = DAY + 1;
    assert_int_equal(launch_benefits_observed_until(&l, "/bin/x", UID_INVALID, DAY), 1);
    assert_int_equal(launch_benefits_observed_until(&l, "/bin/x", 1001, DAY), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(each_application_has_an_effect_of_its_own),
            cmocka_unit_test(starts_from_memory_and_after_upgrades_are_left_out),
            cmocka_unit_test(without_starts_nothing_is_known),
            cmocka_unit_test(a_start_without_replay_takes_the_median),
            cmocka_unit_test(a_control_start_shows_the_metadata),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
