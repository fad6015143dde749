/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Checks when a boot needs nothing of headstart. */

#include "state/idle-boot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NOW (10 * IDLE_BOOT_MAX_USEC)

static void only_without_replay(void **state)
{
    (void)state;
    for (Policy p = 0; p < _POLICY_MAX; p++)
        assert_int_equal(idle_boot_is_due(p, NOW - 1, NOW), p == POLICY_OFF);
}

static void only_while_the_recording_is_recent(void **state)
{
    (void)state;
    assert_false(idle_boot_is_due(POLICY_OFF, 0, NOW)); /* never recorded */
    assert_true(idle_boot_is_due(POLICY_OFF, NOW, NOW));
    assert_true(idle_boot_is_due(POLICY_OFF, NOW - IDLE_BOOT_MAX_USEC, NOW));
    assert_false(idle_boot_is_due(POLICY_OFF, NOW - IDLE_BOOT_MAX_USEC - 1, NOW));
    assert_false(idle_boot_is_due(POLICY_OFF, NOW + 1, NOW)); /* the clock was set back */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(only_without_replay),
            cmocka_unit_test(only_while_the_recording_is_recent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
