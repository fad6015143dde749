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
    const DeviceProfile network = device(100, 1000, 0), slow = device(100, 3000, 0);
    const DeviceProfile disk = device(150, 100, 16000), instant = device(3000, 1, 0);

    assert_int_equal(exact_recording_read_ahead(&card, 128), 16);
    assert_int_equal(exact_recording_read_ahead(&ssd, 128), 16);
    assert_int_equal(exact_recording_read_ahead(&network, 128), 32);
    assert_int_equal(exact_recording_read_ahead(&instant, 128), 16);
    /* Too little of the usual read-ahead would be saved. */
    assert_int_equal(exact_recording_read_ahead(&slow, 128), 0);
    assert_int_equal(exact_recording_read_ahead(&slow, 4096), 128);
    assert_int_equal(exact_recording_read_ahead(&card, 16), 0);
    assert_int_equal(exact_recording_read_ahead(&card, 0), 0);
    assert_int_equal(exact_recording_read_ahead(&disk, 128), 0);
}

static void once_in_four_weeks(void **state)
{
    const usec_t hour = USEC_PER_HOUR, now = 100000 * hour, recent = now - hour;

    assert_true(exact_recording_is_due(POLICY_GATE, 3, recent, 0, now));
    assert_true(exact_recording_is_due(POLICY_CONCURRENT, 3, recent, 0, now));
    assert_false(exact_recording_is_due(POLICY_METADATA, 3, recent, 0, now));
    assert_false(exact_recording_is_due(POLICY_OFF, 3, recent, 0, now));
    /* A new user first sees what replay gains. */
    assert_false(exact_recording_is_due(POLICY_GATE, 2, recent, 0, now));
    /* Nothing was recorded, or nothing was recorded lately. */
    assert_false(exact_recording_is_due(POLICY_GATE, 3, 0, 0, now));
    assert_false(exact_recording_is_due(POLICY_GATE, 3, now - 8 * 24 * hour, 0, now));
    assert_false(exact_recording_is_due(POLICY_GATE, 3, recent, now - 27 * 24 * hour, now));
    assert_true(exact_recording_is_due(POLICY_GATE, 3, recent, now - 28 * 24 * hour, now));
    /* The clock was wrong when that boot was recorded. */
    assert_false(exact_recording_is_due(POLICY_GATE, 3, recent, now + hour, now));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_transfer_takes_half_of_the_latency),
            cmocka_unit_test(once_in_four_weeks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
