/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests how long a boot may be held: boot/hold.h. */

#include "boot/hold.h"

#include "base/macros.h"
#include "util/root-util.h"

#include <sys/stat.h>

static TestRoot root;

static int set_up(void **state)
{
    return test_root_make(&root);
}

static int tear_down(void **state)
{
    return test_root_remove(&root);
}

static void the_kernel_command_line_limits_holds(void **state)
{
    static const struct {
        const char *words;
        usec_t limit;
    } tests[] = {
            {"quiet", HOLD_MAX},
            {"headstart.deadline=300ms", 300 * USEC_PER_MSEC},
            {"headstart.deadline=1s quiet headstart.deadline=0", 0},
            {"headstart.deadline=2min", HOLD_MAX},
            {"headstart.deadline=infinity", HOLD_MAX},
            {"headstart.deadline=", HOLD_MAX},
            {"headstart.deadline=soon", HOLD_MAX},
            {"headstart.deadlines=1 xheadstart.deadline=1 headstart.deadline", HOLD_MAX},
    };

    (void)state;
    assert_true(hold_limit(root.fd) == HOLD_MAX);
    (void)mkdirat(root.fd, "proc", 0700);
    for (size_t i = 0; i < ELEMENTSOF(tests); i++) {
        test_root_put(&root, "proc/cmdline", tests[i].words);
        assert_true(hold_limit(root.fd) == tests[i].limit);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_kernel_command_line_limits_holds),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
