/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the experts that count starts by their time. */

#include "predict/sequence.h"

#include "base/macros.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* needs the four headers above */
#include <cmocka.h>

#define HOUR_MSEC UINT64_C(3600000)
#define DAY_MSEC  (24 * HOUR_MSEC)
/* Monday, 2026-01-05, 00:00 UTC */
#define MONDAY (UINT64_C(20458) * DAY_MSEC)

enum { WORK = 1, PLAY = 2, APPLICATIONS = 3 };

static int by_number(uint32_t a, uint32_t b, const void *userdata)
{
    return a < b ? -1 : a > b;
}

/* When the applications start, each at one hour of the local time. */
typedef struct Habit {
    bool (*works)(uint64_t day); /* after a Monday; else PLAY starts */
    uint64_t work_hour, play_hour;
} Habit;

static bool on_working_days(uint64_t day)
{
    return day % 7 < 5;
}

static bool on_even_days(uint64_t day)
{
    return day % 2 == 0;
}

/* Returns the chance that WORK starts now, by this expert: after a week with the habit, on its
 * eighth day, at 9:00 local time. */
static double chance_of_work(const Habit *h, int64_t offset_hours, int64_t claimed_hours,
                             unsigned expert)
{
    const uint64_t midnight = MONDAY - (uint64_t)(offset_hours * (int64_t)HOUR_MSEC);
    const uint64_t now = midnight + 7 * DAY_MSEC + 9 * HOUR_MSEC;
    const bool runs[APPLICATIONS] = {false};
    SessionLog log = {0};
    Sequence s = {0};
    SequenceSituation x = {
            .log = &log,
            .present = {.begin_msec = now},
            .before = {0, SEQUENCE_NONE, SEQUENCE_NONE},
            .runs = runs,
            .n_applications = APPLICATIONS,
            .now_msec = now,
            .utc_offset_msec = claimed_hours * (int64_t)HOUR_MSEC,
            .halflife_msec = 7 * DAY_MSEC,
    };
    double chance;

    for (uint64_t day = 0; day < 7; day++) {
        bool works = h->works(day);
        LoggedStart start = {.application = works ? WORK : PLAY, .end_msec = 1000};
        const LoggedSession session = {
                .begin_msec = midnight + day * DAY_MSEC +
                              (works ? h->work_hour : h->play_hour) * HOUR_MSEC,
                .length_msec = 1000,
                .n = 1,
                .starts = &start,
        };

        assert_int_equal(session_log_add(&log, &session, by_number, NULL), 0);
    }
    assert_int_equal(sequence_compute(&s, &x), 0);
    chance = sequence_chances(&s, &x, expert)[WORK];
    session_log_done(&log);
    sequence_done(&s);
    return chance;
}

static void hours_and_weekends_are_those_of_the_local_time(void **state)
{
    static const Habit habit = {on_working_days, 9, 9};
    double utc = chance_of_work(&habit, 0, 0, SEQUENCE_HOUR);

    assert_true(utc > 0.9);
    for (int64_t offset = -12; offset <= 14; offset++)
        assert_true(fabs(chance_of_work(&habit, offset, offset, SEQUENCE_HOUR) - utc) < 1e-9);
    /* Monday, 9:00 in Sydney, is Sunday in UTC. */
    assert_true(chance_of_work(&habit, 11, 0, SEQUENCE_HOUR) < 0.5);
}

static void days_change_at_local_midnight(void **state)
{
    static const Habit habit = {on_even_days, 1, 23};
    double utc = chance_of_work(&habit, 0, 0, SEQUENCE_DAY);

    /* The eighth day is odd. */
    assert_true(utc < 0.2);
    for (int64_t offset = -12; offset <= 14; offset++)
        assert_true(fabs(chance_of_work(&habit, offset, offset, SEQUENCE_DAY) - utc) < 1e-9);
    assert_true(chance_of_work(&habit, 5, 0, SEQUENCE_DAY) > 0.5);
}

static void a_clock_at_its_beginning_has_a_local_time(void **state)
{
    const bool runs[APPLICATIONS] = {false};
    const SessionLog log = {0};
    Sequence s = {0};
    SequenceSituation x = {
            .log = &log,
            .before = {0, SEQUENCE_NONE, SEQUENCE_NONE},
            .runs = runs,
            .n_applications = APPLICATIONS,
            .utc_offset_msec = -12 * (int64_t)HOUR_MSEC,
            .halflife_msec = DAY_MSEC,
    };

    assert_int_equal(sequence_compute(&s, &x), 0);
    sequence_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(hours_and_weekends_are_those_of_the_local_time),
            cmocka_unit_test(days_change_at_local_midnight),
            cmocka_unit_test(a_clock_at_its_beginning_has_a_local_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
