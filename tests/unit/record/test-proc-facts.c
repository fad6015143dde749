/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/proc-facts.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void the_parent_follows_its_child(void **state)
{
    pid_t child = fork();
    uint32_t pids[8] = {0};
    size_t n;

    (void)state;
    if (child == 0)
        for (;;)
            pause();
    assert_true(child > 0);
    n = proc_lineage((uint32_t)child, pids, 8);
    assert_true(n >= 2);
    assert_int_equal(pids[0], child);
    assert_int_equal(pids[1], getpid());
    for (size_t i = 0; i < n; i++)
        assert_true(pids[i] > 1);
    assert_int_equal(proc_lineage((uint32_t)child, pids, 1), 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    /* The process is gone. */
    assert_int_equal(proc_lineage((uint32_t)child, pids, 8), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_parent_follows_its_child),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
