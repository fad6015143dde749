/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which policy is chosen: cli/policy.h. */

#include "cli/policy.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void a_gate_that_comes_too_late_is_none(void **state)
{
    assert_int_equal(policy_within_deadline(POLICY_GATE, 10, 10), POLICY_GATE);
    assert_int_equal(policy_within_deadline(POLICY_GATE, 11, 10), POLICY_CONCURRENT);
    assert_int_equal(policy_within_deadline(POLICY_GATE, USEC_INFINITY, 10), POLICY_GATE);
    assert_int_equal(policy_within_deadline(POLICY_IDLE, 11, 10), POLICY_IDLE);
    assert_int_equal(policy_within_deadline(POLICY_METADATA, 11, 10), POLICY_METADATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_gate_that_comes_too_late_is_none)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
