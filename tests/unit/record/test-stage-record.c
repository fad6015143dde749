/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/stage-record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const Moment start = {.boottime = 5 * USEC_PER_SEC, .stalled_usec = 40, .busy_usec = 1000};

static StageRecord begin(Stage stage)
{
    StageRecord s;

    assert_int_equal(stage_record_init(&s), 0);
    stage_record_begin(&s, stage, UID_INVALID, &start);
    return s;
}

/* Updates the stage record every 20 ms during `duration`, as the recorder's timer does. */
static void run_for(StageRecord *s, usec_t duration)
{
    for (usec_t at = 0; at <= duration; at += 20 * USEC_PER_MSEC) {
        Moment now = {.boottime = start.boottime + at,
                      .stalled_usec = start.stalled_usec + at / 2,
                      .busy_usec = start.busy_usec + at};

        if (stage_record_wants_sample(s, now.boottime))
            stage_record_add_sample(s, &now);
    }
}

static void test_short_stage(void **state _unused_)
{
    StageRecord s = begin(STAGE_BOOT);

    run_for(&s, USEC_PER_SEC);
    assert_int_equal(s.n_samples, 10);
    assert_int_equal(s.samples[0].at, 100 * USEC_PER_MSEC);
    assert_int_equal(s.samples[9].at, USEC_PER_SEC);
    assert_int_equal(s.samples[9].busy, USEC_PER_SEC);
    assert_int_equal(s.samples[9].stalled, USEC_PER_SEC / 2);
    stage_record_done(&s);
}

/* The samples of a stage of any length are bounded in number and cover all of the stage. */
static void test_long_stage(void **state _unused_)
{
    StageRecord s = begin(STAGE_LOGIN);

    run_for(&s, 300 * USEC_PER_SEC);
    assert_in_range(s.n_samples, TRACE_SAMPLES_MAX / 2, TRACE_SAMPLES_MAX);
    assert_true(s.samples[0].at < 5 * USEC_PER_SEC);
    assert_true(s.samples[s.n_samples - 1].at > 290 * USEC_PER_SEC);
    for (size_t i = 1; i < s.n_samples; i++)
        assert_true(s.samples[i].at > s.samples[i - 1].at);
    stage_record_done(&s);
}

static void test_sessions_have_none(void **state _unused_)
{
    StageRecord s = begin(STAGE_SESSION);

    run_for(&s, 10 * USEC_PER_SEC);
    assert_int_equal(s.n_samples, 0);
    stage_record_done(&s);
}

/* There is no sample without the kernel's totals, nor if the totals have fallen. */
static void test_unknown_totals(void **state _unused_)
{
    StageRecord s = begin(STAGE_BOOT);
    Moment now = MOMENT_NULL;

    now.boottime = start.boottime + USEC_PER_SEC;
    stage_record_add_sample(&s, &now);
    assert_int_equal(s.n_samples, 0);
    now.busy_usec = start.busy_usec - 1;
    now.stalled_usec = start.stalled_usec;
    stage_record_add_sample(&s, &now);
    assert_int_equal(s.n_samples, 0);
    stage_record_done(&s);
}

static void test_suspended(void **state _unused_)
{
    const Moment begin = {.boottime = 8 * USEC_PER_SEC, .monotonic = 5 * USEC_PER_SEC};
    Moment end = {.boottime = 68 * USEC_PER_SEC, .monotonic = 65 * USEC_PER_SEC};

    /* A suspend before the stage does not count, nor that the clocks are read one after the other.
     */
    assert_false(moment_suspended(&begin, &end));
    end.monotonic -= 20 * USEC_PER_MSEC;
    assert_false(moment_suspended(&begin, &end));
    end.boottime += 8 * USEC_PER_HOUR;
    assert_true(moment_suspended(&begin, &end));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_short_stage),        cmocka_unit_test(test_long_stage),
            cmocka_unit_test(test_sessions_have_none), cmocka_unit_test(test_unknown_totals),
            cmocka_unit_test(test_suspended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
