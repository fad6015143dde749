/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests plan/exact-recording.h. */

#include "plan/exact-recording.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static DeviceProfile device(double rate, double fixed, double seek)
{
    return (DeviceProfile){
            .rate_bytes_per_usec = rate, .fixed_usec = fixed, .depth = 1, .seek_max_usec = seek};
}

static void the_transfer_takes_half_of_the_latency(void **state)
{
    const DeviceProfile card = device(22, 1000, 0), ssd = device(500, 80, 0);
    const DeviceProfile network = device(100, 1000, 0);
    const DeviceProfile disk = device(150, 100, 16000), instant = device(3000, 1, 0);

    assert_int_equal(exact_recording_read_ahead(&card, 128), 16);
    assert_int_equal(exact_recording_read_ahead(&ssd, 128), 16);
    assert_int_equal(exact_recording_read_ahead(&network, 128), 32);
    assert_int_equal(exact_recording_read_ahead(&instant, 128), 16);
    /* Too little of the usual read-ahead would be saved. */
    assert_int_equal(exact_recording_read_ahead(&card, 16), 0);
    assert_int_equal(exact_recording_read_ahead(&card, 0), 0);
    assert_int_equal(exact_recording_read_ahead(&disk, 128), 0);
}

static void a_slow_recording_is_made_up_for(void **state)
{
    const DeviceProfile slow = device(100, 3000, 0), far = device(100, 20000, 0);

    /* Three more requests of 3 ms for 128 KiB, which a pack without 32 KiB of them makes up for in
     * 28 boots. */
    assert_int_equal(exact_recording_read_ahead(&slow, 128), 32);
    /* A quarter is less than the smallest read-ahead. */
    assert_int_equal(exact_recording_read_ahead(&slow, 32), 0);
    /* The transfer of 128 KiB takes less than half of the latency, and 4 MiB are usual. */
    assert_int_equal(exact_recording_read_ahead(&slow, 4096), 128);
    /* 50 KiB would not be whole pages. */
    assert_int_equal(exact_recording_read_ahead(&slow, 200), 48);
    /* 183 boots, and 46 boots. */
    assert_int_equal(exact_recording_read_ahead(&far, 128), 0);
    assert_int_equal(exact_recording_read_ahead(&far, 512), 128);
}

static void once_in_four_weeks(void **state)
{
    const usec_t hour = USEC_PER_HOUR, now = 100000 * hour, recent = now - hour;

    ExactRecordingFacts f = {.n_replayed = 3, .recorded = recent, .drawn = true};

    for (f.policy = 0; f.policy < _POLICY_MAX; f.policy++)
        assert_int_equal(exact_recording_is_due(&f, now),
                         f.policy == POLICY_GATE || f.policy == POLICY_CONCURRENT);
    f.policy = POLICY_GATE;
    /* A new user first sees what replay gains. */
    f.n_replayed = 2;
    assert_false(exact_recording_is_due(&f, now));
    f.n_replayed = 3;
    /* Nothing was recorded, or nothing was recorded lately. */
    f.recorded = 0;
    assert_false(exact_recording_is_due(&f, now));
    f.recorded = now - 8 * 24 * hour;
    assert_false(exact_recording_is_due(&f, now));
    f.recorded = recent;
    f.exact = now - 27 * 24 * hour;
    assert_false(exact_recording_is_due(&f, now));
    f.exact = now - 28 * 24 * hour;
    assert_true(exact_recording_is_due(&f, now));
    /* The clock was wrong when that boot was recorded. */
    f.exact = now + hour;
    assert_false(exact_recording_is_due(&f, now));
}

static void it_costs_no_more_than_control_sessions(void **state)
{
    const usec_t hour = USEC_PER_HOUR, now = 100000 * hour;
    ExactRecordingFacts f = {.policy = POLICY_GATE,
                             .n_replayed = 300,
                             .n_replayed_since = 200,
                             .recorded = now - hour,
                             .exact = now - 28 * 24 * hour,
                             .drawn = true};

    assert_true(exact_recording_is_due(&f, now));
    f.shown = true;
    assert_false(exact_recording_is_due(&f, now));
    f.n_replayed_since = 201;
    assert_true(exact_recording_is_due(&f, now));
    f.drawn = false;
    assert_false(exact_recording_is_due(&f, now));
    /* The first one follows three replayed boots. */
    f = (ExactRecordingFacts){.policy = POLICY_GATE,
                              .n_replayed = 3,
                              .n_replayed_since = 3,
                              .recorded = now - hour,
                              .shown = true,
                              .drawn = true};
    assert_true(exact_recording_is_due(&f, now));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_transfer_takes_half_of_the_latency),
            cmocka_unit_test(a_slow_recording_is_made_up_for),
            cmocka_unit_test(once_in_four_weeks),
            cmocka_unit_test(it_costs_no_more_than_control_sessions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
