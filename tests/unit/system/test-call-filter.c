/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the filter that refuses system calls that systemd may not know. */

#include "system/cachestat.h"
#include "system/call-filter.h"
#include "util/root-util.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define AFTER_OPENAT2(n) (SYS_openat2 + (n))

/* Runs the function in a child process, because a filter cannot be removed. Returns the exit status
 * of the child. */
static int in_child(int (*function)(void))
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(function());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int error_of_call(long number)
{
    return syscall(number, -1L, NULL, NULL, -1L, 0L, 0L) < 0 ? errno : 0;
}

/* Enters a sandbox like that of a unit, whose filter allows all that it knows. */
static void enter_sandbox(void)
{
    struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {.len = 1, .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        _exit(77);
}

static int refuses_later_calls(void)
{
    const int cachestat = error_of_call(AFTER_OPENAT2(14));
    const int openat2 = error_of_call(SYS_openat2);

    enter_sandbox();
    if (call_filter_complete() != 1)
        return 1;
    for (long n = 15; n < 200; n++) /* fchmodat2(2), and later calls also of future kernels */
        if (error_of_call(AFTER_OPENAT2(n)) != ENOSYS)
            return 2;
    if (error_of_call(AFTER_OPENAT2(14)) != cachestat || error_of_call(SYS_openat2) != openat2)
        return 3;
    return cachestat == 0 || openat2 == ENOSYS ? 4 : 0;
}

static int does_nothing_outside(void)
{
    if (prctl(PR_GET_SECCOMP) != 0)
        return 0; /* the test itself runs in a sandbox */
    return call_filter_complete() == 0 && prctl(PR_GET_SECCOMP) == 0 ? 0 : 1;
}

static void later_calls_are_refused_in_a_sandbox(void **state)
{
    int status = in_child(refuses_later_calls);

    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

static void outside_a_sandbox_nothing_is_refused(void **state)
{
    assert_int_equal(in_child(does_nothing_outside), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(later_calls_are_refused_in_a_sandbox),
            cmocka_unit_test(outside_a_sandbox_nothing_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
