/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "replay/hold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static PackHeader header_of(usec_t deadline, uint32_t hold)
{
    return (PackHeader){.deadline_usec = htole64(deadline), .hold_usec = htole32(hold)};
}

static void the_deadline_counts_from_the_begin_of_the_wait(void **state)
{
    const Hold x = {.from = 1000, .start = 51000, .max = HOLD_MAX};
    PackHeader h = header_of(300000, 0);
    HoldEnd end;

    (void)state;
    assert_int_equal(hold_until(&x, &h, POLICY_GATE, &end), 301000);
    assert_int_equal(end, HOLD_END_DEADLINE);
    /* The planned hold time counts from the start of the replay, but the deadline stays. */
    h = header_of(300000, 200000);
    assert_int_equal(hold_until(&x, &h, POLICY_GATE, &end), 251000);
    assert_int_equal(end, HOLD_END_PLANNED);
    h = header_of(300000, 250000);
    assert_int_equal(hold_until(&x, &h, POLICY_GATE, &end), 301000);
    assert_int_equal(end, HOLD_END_DEADLINE);
}

static void an_earlier_hold_counts(void **state)
{
    Hold x = {.from = 1000, .start = 1000, .max = HOLD_MAX, .held = 180000};
    PackHeader h = header_of(300000, 0);
    HoldEnd end;

    (void)state;
    assert_int_equal(hold_until(&x, &h, POLICY_GATE, &end), 121000);
    h = header_of(300000, 200000);
    assert_int_equal(hold_until(&x, &h, POLICY_GATE, &end), 21000);
    assert_int_equal(end, HOLD_END_PLANNED);
    x.held = 300001;
    assert_int_equal(hold_until(&x, &h, POLICY_GATE, &end), 1000);
}

static void every_hold_is_bounded(void **state)
{
    Hold x = {.from = 1000, .start = 1000, .max = HOLD_MAX};
    const PackHeader h = header_of(UINT64_MAX, 0), planned = header_of(UINT64_MAX, UINT32_MAX);
    HoldEnd end;

    (void)state;
    assert_int_equal(hold_until(&x, &h, POLICY_GATE, &end), 1000 + HOLD_MAX);
    assert_int_equal(hold_until(&x, &planned, POLICY_GATE, &end), 1000 + HOLD_MAX);
    assert_int_equal(hold_unread_until(&x), 1000 + HOLD_UNREAD_MAX);
    x.max = 500;
    assert_int_equal(hold_until(&x, &h, POLICY_GATE, &end), 1500);
    assert_int_equal(end, HOLD_END_DEADLINE);
    assert_int_equal(hold_unread_until(&x), 1500);
}

static void only_gate_holds(void **state)
{
    const Hold x = {.from = 1000, .start = 2000, .max = HOLD_MAX};
    const PackHeader h = header_of(300000, 200000);
    HoldEnd end = _HOLD_END_MAX;

    (void)state;
    for (Policy p = 0; p < _POLICY_MAX; p++)
        if (p != POLICY_GATE)
            assert_int_equal(hold_until(&x, &h, p, &end), 1000);
    assert_int_equal(end, HOLD_END_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_deadline_counts_from_the_begin_of_the_wait),
            cmocka_unit_test(an_earlier_hold_counts),
            cmocka_unit_test(every_hold_is_bounded),
            cmocka_unit_test(only_gate_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
