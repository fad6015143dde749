/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "observe/proc-facts.h"

#include "base/clock.h"
#include "base/rooted.h"
#include "base/uid.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define READING                                                                       \
    (10 * USEC_PER_MSEC) /* the time that reading the mounts of another process takes \
                          */

static usec_t now = 1000 * USEC_PER_SEC;
static unsigned n_read;

usec_t __wrap_clock_now(clockid_t clock);
int __real_rooted_read(int root_fd, const char *path, size_t max_size, char **ret,
                       size_t *ret_size);
int __wrap_rooted_read(int root_fd, const char *path, size_t max_size, char **ret,
                       size_t *ret_size);

usec_t __wrap_clock_now(clockid_t clock)
{
    return now;
}

int __wrap_rooted_read(int root_fd, const char *path, size_t max_size, char **ret, size_t *ret_size)
{
    if (strstr(path, "/mountinfo") && !strstr(path, "/self/")) {
        now += READING;
        n_read++;
    }
    return __real_rooted_read(root_fd, path, max_size, ret, ret_size);
}

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

static void the_control_group_names_the_user(void **state)
{
    static const struct {
        const char *text;
        uint32_t uid;
    } cases[] = {
            {"0::/user.slice/user-1000.slice/session-3.scope\n", 1000},
            {"0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope\n", 1000},
            {"9:name=systemd:/user.slice/user-1001.slice/session-1.scope\n0::/\n", 1001},
            {"12:pids:/\n0::/user.slice/user-116.slice/session-c1.scope", 116},
            {"0::/system.slice/cron.service\n", UID_INVALID},
            {"0::/machine.slice/x.scope/user.slice/user-1000.slice/session-1.scope\n", UID_INVALID},
            /* A user may make this group below the own one. */
            {"0::/user.slice/user-1000.slice/x.service/user.slice/user-1001.slice/x\n", 1000},
            {"0::/user.slice/user-1000-x.slice/y\n", UID_INVALID},
            {"0::/user.slice/user-.slice/y\n", UID_INVALID},
            {"0::/user.slice/user-4294967295.slice/y\n", UID_INVALID},
            {"0::/user.slice/user-99999999999999999999.slice/y\n", UID_INVALID},
            {"0:/user.slice/user-1000.slice/y\n", UID_INVALID},
            {"", UID_INVALID},
            {"\n\n", UID_INVALID},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(proc_cgroup_user(cases[i].text), cases[i].uid);
}

/* The saved and the effective UID do not count: a set-user-ID program belongs to the user who
 * started it. */
static void a_set_user_id_program_is_the_users(void **state)
{
    pid_t child;
    int ready[2];
    char byte;

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        if (setresuid(1234, 0, 0) < 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(proc_user((uint32_t)child), 1234);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(proc_user((uint32_t)child), UID_INVALID);
}

/* A user executes programs in a mount namespace with so many mounts that reading them takes long.
 */
static void other_namespaces_have_a_share_of_the_time(void **state)
{
    ProcReader *x = NULL;
    ProcFacts f;
    pid_t child;
    int ready[2];
    char byte;

    if (geteuid() != 0)
        skip();
    assert_int_equal(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the test fails */
        if (unshare(CLONE_NEWNS) < 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(proc_reader_new(&x), 0);
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(proc_facts_read(x, (uint32_t)child, &f), 0);
    /* A second at once, and then a tenth of the time that has passed. */
    assert_in_range(n_read, 100, 115);
    assert_true(f.remote && f.exe[0] == 0);
    now += USEC_PER_SEC;
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(proc_facts_read(x, (uint32_t)child, &f), 0);
    assert_in_range(n_read, 110, 130);
    proc_reader_free(x);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_parent_follows_its_child),
            cmocka_unit_test(the_control_group_names_the_user),
            cmocka_unit_test(a_set_user_id_program_is_the_users),
            cmocka_unit_test(other_namespaces_have_a_share_of_the_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
