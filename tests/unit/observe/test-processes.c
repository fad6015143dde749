/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests which application a process is assigned to, with sequences of events as the kernel reports
 * them. Opens come through one queue and the connector's events through another; a batch processes
 * the connector's events first. */

#include "observe/processes.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
    SYSTEMD = 1, /* objects */
    SCRIPT,
    OTHER_SCRIPT,
    SH,
    CAT,
    PYTHON,
    ENV,
    LOADER,
    HEADSTARTD,
    LIBC, /* opened, not executed */
    ON_TMPFS,
};

static ProcessTable *table;
static bool connector;
static usec_t now;
static unsigned n_asked; /* the number of look-ups in /proc */
static bool runs_from_tmpfs;

static int set_up(void **state)
{
    table = process_table_new();
    connector = true;
    now = 1000;
    n_asked = 0;
    runs_from_tmpfs = false;
    assert_int_equal(process_table_add(table, 1, SYSTEMD, 0, 0, false), 0);
    return 0;
}

static int tear_down(void **state)
{
    table = process_table_free(table);
    return 0;
}

static uint32_t open_as(uint32_t pid, uint32_t object, unsigned flags)
{
    uint32_t run = 12345;

    assert_int_equal(process_table_open(table, pid, object,
                                        flags | (connector ? (unsigned)OPEN_REPORTED : 0), now,
                                        &run),
                     0);
    return run;
}

static uint32_t opens(uint32_t pid)
{
    return open_as(pid, LIBC, 0);
}

static uint32_t program(uint32_t pid, uint32_t object)
{
    return open_as(pid, object,
                   OPEN_EXEC | (object == LOADER ? (unsigned)OPEN_LOADER : 0) |
                           (object == ENV ? (unsigned)OPEN_ENV : 0) |
                           (object == HEADSTARTD ? (unsigned)OPEN_OWN : 0));
}

static void forks(uint32_t parent, uint32_t child)
{
    assert_int_equal(process_table_fork(table, parent, child), 0);
}

static void execs(uint32_t pid)
{
    assert_int_equal(process_table_exec(table, pid, now), 0);
}

static void exits(uint32_t pid)
{
    process_table_exit(table, pid, now);
}

static bool name(void *arg, uint32_t pid, uint32_t *ret_object, bool *ret_own)
{
    n_asked++;
    if (!runs_from_tmpfs)
        return true;
    *ret_object = ON_TMPFS;
    return false;
}

static void batch(void)
{
    now += 20000;
    process_table_settle(table, name, NULL);
}

static const ProcessRun *run_of(uint32_t run)
{
    size_t n;
    const ProcessRun *runs = process_table_runs(table, &n);

    assert_true(run < n);
    return &runs[run];
}

static const ProcessRun *last_run_of(uint32_t run)
{
    while (run_of(run)->same_as != PROCESS_NONE)
        run = run_of(run)->same_as;
    return run_of(run);
}

/* Returns the application that the trace will name for the run. */
static uint32_t application(uint32_t run)
{
    uint32_t object;

    if (run == PROCESS_NONE)
        return PROCESS_NONE;
    object = run_of(run)->object;
    for (uint32_t a = run_of(run)->same_as; a != PROCESS_NONE; a = run_of(a)->same_as)
        object = run_of(a)->object;
    return object;
}

/* Returns the number of the application's lifetimes in the trace. */
static size_t n_lifetimes(uint32_t object)
{
    size_t n, found = 0;
    const ProcessRun *runs = process_table_runs(table, &n);

    for (size_t i = 0; i < n; i++)
        found += runs[i].object == object && runs[i].same_as == PROCESS_NONE;
    return found;
}

static void test_elf(void **state)
{
    forks(1, 10);
    assert_int_equal(application(opens(10)), SYSTEMD);
    execs(10);
    assert_int_equal(application(program(10, CAT)), CAT);
    assert_int_equal(application(program(10, LOADER)), CAT);
    assert_int_equal(application(opens(10)), CAT);
    assert_int_equal(application(opens(1)), SYSTEMD);
    batch();
    batch();
    assert_int_equal(application(opens(10)), CAT);
    assert_int_equal(n_lifetimes(CAT), 1);
    assert_int_equal(n_asked, 0);
}

static void test_script(void **state)
{
    forks(1, 10);
    execs(10);
    program(10, SCRIPT);
    assert_int_equal(application(program(10, SH)), SCRIPT);
    assert_int_equal(application(program(10, LOADER)), SCRIPT);
    assert_int_equal(application(opens(10)), SCRIPT);
    assert_int_equal(n_lifetimes(SH), 0);
}

/* A script whose interpreter is a script. */
static void test_script_of_script(void **state)
{
    forks(1, 10);
    execs(10);
    program(10, SCRIPT);
    program(10, OTHER_SCRIPT);
    program(10, SH);
    program(10, LOADER);
    assert_int_equal(application(opens(10)), SCRIPT);
    assert_int_equal(n_lifetimes(OTHER_SCRIPT) + n_lifetimes(SH), 0);
}

/* On a cold disk an execve takes many batches; the connector reports it when it is complete. */
static void test_slow_execve(void **state)
{
    forks(1, 10);
    program(10, SCRIPT);
    for (int i = 0; i < 10; i++)
        batch();
    program(10, SH);
    for (int i = 0; i < 10; i++)
        batch();
    assert_int_equal(application(program(10, LOADER)), SCRIPT);
    batch();
    execs(10);
    assert_int_equal(application(opens(10)), SCRIPT);
    batch();
    batch();
    assert_int_equal(application(opens(10)), SCRIPT);
    assert_int_equal(n_lifetimes(SCRIPT), 1);
    assert_int_equal(n_lifetimes(SH), 0);
    assert_int_equal(n_asked, 0);
}

/* The connector's event is read one batch before the opens it confirms. */
static void test_connector_first(void **state)
{
    uint32_t child;

    forks(1, 10);
    execs(10);
    forks(10, 11); /* after the execve, by a run that has no name yet */
    batch();
    program(10, SCRIPT);
    program(10, SH);
    program(10, LOADER);
    opens(10);
    child = opens(11);
    batch();
    assert_int_equal(application(child), SCRIPT);
    batch();
    assert_int_equal(application(opens(10)), SCRIPT);
    assert_int_equal(n_lifetimes(SCRIPT), 1);
    assert_int_equal(n_asked, 0);
}

/* In one batch, the parent executes a program, forks, and executes another program. Checks to which
 * of the two programs the child belongs. */
static void test_fork_between_execs(void **state)
{
    uint32_t child;

    forks(1, 10);
    execs(10);
    forks(10, 11);
    execs(10);
    program(10, SCRIPT);
    program(10, SH);
    program(10, LOADER);
    opens(10);
    child = opens(11);
    program(10, CAT);
    program(10, LOADER);
    assert_int_equal(application(opens(10)), CAT);
    exits(10);
    batch();
    batch();
    assert_int_equal(application(child), SCRIPT);
    assert_int_equal(application(opens(11)), SCRIPT);
    assert_true(last_run_of(child)->end == USEC_INFINITY); /* the script's child lives */
    exits(11);
    batch();
    batch();
    assert_true(last_run_of(child)->end < USEC_INFINITY);
}

/* A process is forked, executes a program, opens a file and ends before the batch is read. */
static void test_all_in_one_batch(void **state)
{
    uint32_t run;

    forks(1, 10);
    execs(10);
    now += 10;
    exits(10);
    program(10, CAT);
    program(10, LOADER);
    run = opens(10);
    assert_int_equal(application(run), CAT);
    batch();
    assert_int_equal(application(opens(10)), CAT); /* queued after the batch's events */
    batch();
    assert_int_equal(opens(10), PROCESS_NONE);
    assert_true(run_of(run)->end >= run_of(run)->start);
    assert_int_equal(run_of(run)->end, 1010);
    assert_int_equal(run_of(run)->n_processes, 0);
    assert_int_equal(n_lifetimes(CAT), 1);
}

/* The exit of a process is read before the opens of its execve. */
static void test_exit_first(void **state)
{
    forks(1, 10);
    execs(10);
    exits(10);
    batch();
    program(10, CAT);
    program(10, LOADER);
    assert_int_equal(application(opens(10)), CAT);
    batch();
    assert_int_equal(opens(10), PROCESS_NONE);
    assert_int_equal(n_lifetimes(CAT), 1);
    assert_int_equal(n_asked, 0);
}

/* A statically linked program has no loader that ends the group. The confirmed execve ends the
 * group a batch later. */
static void test_static(void **state)
{
    forks(1, 10);
    execs(10);
    program(10, CAT);
    batch();
    batch();
    execs(10);
    assert_int_equal(application(program(10, SCRIPT)), SCRIPT);
    assert_int_equal(application(opens(10)), SCRIPT);
    assert_int_equal(n_lifetimes(CAT), 1);
    assert_int_equal(n_lifetimes(SCRIPT), 1);
}

static void test_env(void **state)
{
    uint32_t early;

    /* #!/usr/bin/env python3 */
    forks(1, 10);
    execs(10);
    program(10, SCRIPT);
    program(10, ENV);
    program(10, LOADER);
    early = opens(10);
    execs(10);
    forks(10, 11);
    program(10, PYTHON);
    program(10, LOADER);
    assert_int_equal(application(early), SCRIPT);
    assert_int_equal(application(opens(10)), SCRIPT);
    batch();
    batch();
    assert_int_equal(application(opens(11)), SCRIPT);
    assert_int_equal(n_lifetimes(SCRIPT), 1);
    assert_int_equal(n_lifetimes(PYTHON), 0);
    /* A program that this program executes is another application. */
    execs(10);
    assert_int_equal(application(program(10, CAT)), CAT);
    program(10, LOADER);
    assert_int_equal(application(opens(10)), CAT);

    /* env itself, started directly: the program that it executes is not env. */
    forks(1, 20);
    execs(20);
    assert_int_equal(application(program(20, ENV)), ENV);
    program(20, LOADER);
    opens(20);
    execs(20);
    assert_int_equal(application(program(20, CAT)), CAT);
}

/* A process that executes one script of env after the other makes no chain of runs: each run is
 * part of the first one. */
static void test_env_of_env(void **state)
{
    connector = false;
    program(10, SCRIPT);
    for (int i = 0; i < 100; i++) {
        program(10, ENV);
        program(10, LOADER);
        opens(10);
        program(10, PYTHON);
    }
    for (uint32_t run = opens(10); run_of(run)->same_as != PROCESS_NONE; run = 0)
        assert_int_equal(run_of(run_of(run)->same_as)->same_as, PROCESS_NONE);
    assert_int_equal(application(opens(10)), SCRIPT);
}

/* Without a connector everything depends on the opens. */
static void test_without_connector(void **state)
{
    connector = false;
    program(10, SCRIPT);
    program(10, ENV);
    program(10, LOADER);
    opens(10);
    program(10, PYTHON);
    program(10, LOADER);
    assert_int_equal(application(opens(10)), SCRIPT);
    assert_int_equal(n_lifetimes(SCRIPT), 1);
    program(10, CAT);
    program(10, LOADER);
    assert_int_equal(application(opens(10)), CAT);
    assert_int_equal(application(opens(99)), PROCESS_NONE);
    assert_int_equal(n_asked, 0);
}

/* ENOEXEC: the file was opened for execution, but the process still runs its old program. */
static void test_failed_execve(void **state)
{
    uint32_t before;

    forks(1, 10);
    before = opens(10);
    program(10, SCRIPT);
    assert_int_equal(opens(10), before);
    assert_int_equal(application(opens(10)), SYSTEMD);
    assert_int_equal(n_lifetimes(SCRIPT), 0);
    /* Then the process executes the shell, as execvp(3) does. The script is the application. */
    program(10, SCRIPT);
    program(10, SH);
    program(10, LOADER);
    execs(10);
    assert_int_equal(application(opens(10)), SCRIPT);
    batch();
    batch();
    exits(10);
    batch();
    batch();
    assert_int_equal(n_lifetimes(SCRIPT), 1);
    assert_int_equal(run_of(before)->n_processes, 1); /* only systemd */
}

/* chroot, on an unwatched filesystem, executes a script that forks and then executes cat: the child
 * belongs to the script. */
static void test_unwatched_first(void **state)
{
    for (int gone = 0; gone < 2; gone++) {
        uint32_t pid = gone ? 20 : 10, child = pid + 1, run;

        forks(1, pid);
        execs(pid); /* chroot */
        execs(pid); /* the script */
        forks(pid, child);
        execs(pid); /* cat */
        if (gone)
            exits(pid);
        program(pid, SCRIPT);
        program(pid, SH);
        program(pid, LOADER);
        opens(pid);
        run = opens(child);
        program(pid, CAT);
        program(pid, LOADER);
        assert_int_equal(application(opens(pid)), CAT);
        batch();
        batch();
        assert_int_equal(application(run), SCRIPT);
        assert_int_equal(application(opens(child)), SCRIPT);
        assert_int_equal(n_lifetimes(SCRIPT), 1 + gone);
        assert_int_equal(n_lifetimes(CAT), 1 + gone);
        assert_int_equal(n_asked, 1);
    }
}

/* chroot, on an unwatched filesystem, changes its UID and executes a program from a cold disk: the
 * program's exec event comes long before the report of its execve. */
static void test_unwatched_before_slow_execve(void **state)
{
    uint32_t run;
    usec_t reported_at;

    forks(1, 10);
    execs(10); /* chroot */
    assert_int_equal(process_table_uid(table, 10, 1000), 0);
    runs_from_tmpfs = true;
    run = program(10, SCRIPT);
    batch();
    program(10, SH);
    batch();
    batch();
    assert_int_equal(n_lifetimes(ON_TMPFS), 1);
    program(10, LOADER);
    execs(10);
    reported_at = now;
    runs_from_tmpfs = false;
    batch();
    batch();
    batch();
    assert_int_equal(application(opens(10)), SCRIPT);
    assert_int_equal(application(run), SCRIPT);
    assert_int_equal(last_run_of(run)->uid, 1000);
    assert_int_equal(run_of(run)->start, reported_at);
    assert_int_equal(n_lifetimes(SCRIPT), 1);
    assert_int_equal(n_lifetimes(SH), 0);
}

/* The same, but the execve ends before /proc is read, and its report is read in the batch after. */
static void test_unwatched_before_execve(void **state)
{
    uint32_t run;

    forks(1, 10);
    execs(10); /* chroot */
    assert_int_equal(process_table_uid(table, 10, 1000), 0);
    run = program(10, CAT);
    program(10, LOADER);
    batch();
    batch();
    execs(10);
    batch();
    batch();
    batch();
    assert_int_equal(application(run), CAT);
    assert_int_equal(last_run_of(run)->uid, 1000);
    assert_int_equal(last_run_of(run)->n_processes, 1);
    assert_int_equal(n_lifetimes(CAT), 1);
}

/* The other way round: a watched program executes an unwatched one. */
static void test_unwatched_last(void **state)
{
    uint32_t run;

    runs_from_tmpfs = true;
    forks(1, 10);
    execs(10);
    execs(10);
    forks(10, 11);
    program(10, SCRIPT);
    program(10, SH);
    program(10, LOADER);
    run = opens(10);
    batch();
    batch();
    assert_int_equal(application(run), SCRIPT);
    assert_int_equal(application(opens(10)), ON_TMPFS);
    assert_int_equal(application(opens(11)), ON_TMPFS);
    assert_int_equal(n_lifetimes(SCRIPT), 1);
    assert_int_equal(n_lifetimes(ON_TMPFS), 1);
}

/* Opens on an unwatched filesystem are not reported, so /proc is read once, a batch after the
 * connector has reported the execve. */
static void test_unwatched(void **state)
{
    runs_from_tmpfs = true;
    forks(1, 10);
    execs(10);
    forks(10, 11);
    batch();
    assert_int_equal(n_asked, 0);
    batch();
    assert_int_equal(n_asked, 1);
    assert_int_equal(application(opens(10)), ON_TMPFS);
    assert_int_equal(application(opens(11)), ON_TMPFS);
    assert_int_equal(n_lifetimes(ON_TMPFS), 1);
    /* The process ends before the recorder reads /proc. */
    forks(1, 20);
    execs(20);
    exits(20);
    batch();
    batch();
    assert_int_equal(n_asked, 1);
    assert_int_equal(opens(20), PROCESS_NONE);
    batch();
    assert_int_equal(n_asked, 1);
}

static void test_lost_events(void **state)
{
    forks(1, 10);
    program(10, SCRIPT);
    program(10, SH);
    program(10, LOADER);
    process_table_lost(table); /* the execve is among the lost events */
    assert_int_equal(application(opens(10)), SCRIPT);
}

/* A pid is used again; the kernel may also report an event twice. */
static void test_duplicate_pids(void **state)
{
    uint32_t first, second;

    forks(1, 10);
    execs(10);
    program(10, CAT);
    program(10, LOADER);
    first = opens(10);
    forks(1, 10); /* reported twice, or its exit was lost: the entry stays */
    assert_int_equal(opens(10), first);
    exits(10);
    exits(10);
    forks(1, 10);
    second = opens(10);
    assert_int_equal(application(second), SYSTEMD);
    assert_int_not_equal(first, second);
    assert_int_equal(run_of(first)->n_processes, 0);
    batch();
    batch();
    assert_int_equal(opens(10), second);
}

/* A thread other than the leader executes a program: the kernel reports the exit of the leader, and
 * then the execve. The process lives on. */
static void test_exec_by_thread(void **state)
{
    for (int later = 0; later < 2; later++) {
        uint32_t pid = later ? 20 : 10, first, run;

        forks(1, pid);
        assert_int_equal(process_table_uid(table, pid, 1000), 0);
        execs(pid);
        program(pid, SH);
        program(pid, LOADER);
        first = opens(pid);
        batch();
        batch();
        exits(pid);
        if (later)
            batch();
        execs(pid);
        program(pid, CAT);
        program(pid, LOADER);
        run = opens(pid);
        for (int i = 0; i < 4; i++)
            batch();
        assert_int_equal(opens(pid), run);
        assert_int_equal(application(run), CAT);
        assert_int_equal(process_table_uid_of(table, pid), 1000);
        assert_true(last_run_of(first)->end < USEC_INFINITY);
        assert_true(last_run_of(run)->end == USEC_INFINITY);
        assert_int_equal(n_lifetimes(CAT), 1 + later);
        exits(pid);
        forks(1, pid); /* the PID is used again */
        assert_int_equal(application(opens(pid)), SYSTEMD);
        assert_int_equal(process_table_uid_of(table, pid), 0);
        assert_true(last_run_of(run)->end < USEC_INFINITY);
        exits(pid);
        batch();
        batch();
        assert_false(process_table_knows(table, pid));
    }
}

static void test_uid(void **state)
{
    forks(1, 10);
    assert_int_equal(process_table_uid(table, 10, 1000), 0);
    execs(10);
    forks(10, 11);
    execs(11);
    program(10, SCRIPT);
    program(10, SH);
    program(10, LOADER);
    assert_int_equal(run_of(opens(10))->uid, 1000);
    program(11, CAT);
    program(11, LOADER);
    assert_int_equal(run_of(opens(11))->uid, 1000);
    assert_int_equal(run_of(opens(1))->uid, 0);
}

static bool is_below_1000(uint32_t pid)
{
    return pid < 1000;
}

/* What a person starts belongs to this person, also as root and with a subordinate UID; but a
 * system account or another person does not become somebody else's. */
static void test_owner(void **state)
{
    static const struct {
        uint32_t before, uid, owner;
    } cases[] = {
            {1000, 0, 1000},          /* sudo, or a set-user-ID program that becomes root */
            {1000, 100000, 1000},     /* a container of the user */
            {1000, 4000000000, 1000}, /* with UIDs of sssd, which subuid(5) does not list */
            {1000, 1001, 1001},       /* su */
            {200000, 0, 200000},      /* a person with a high UID */
            {101, 0, 0},              /* D-Bus starts a service */
            {65534, 0, 0},
            {0, 100000, 100000}, /* a container of the machine, or the login of a person */
            {0, 1000, 1000},
    };

    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t pid = 50 + 2 * i;

        forks(1, pid);
        assert_int_equal(process_table_uid(table, pid, cases[i].before), 0);
        assert_int_equal(process_table_uid(table, pid, cases[i].uid), 0);
        assert_int_equal(process_table_uid_of(table, pid), cases[i].owner);
        execs(pid);
        program(pid, CAT);
        batch();
        batch();
        assert_int_equal(run_of(opens(pid))->uid, cases[i].owner);
        forks(pid, pid + 1);
        assert_int_equal(process_table_uid_of(table, pid + 1), cases[i].owner);
    }
}

/* A process that has exited is forgotten, whatever it did before and however it is found out. Its
 * PID then belongs to no user. */
static void test_forgotten(void **state)
{
    for (uint32_t pid = 1000; pid < 1008; pid++) {
        unsigned kind = pid - 1000;

        forks(1, pid);
        assert_int_equal(process_table_uid(table, pid, 1000), 0);
        if (kind & 1)
            execs(pid);
        if (kind & 2)
            program(pid, CAT);
        if (kind & 4)
            exits(pid);
        else
            process_table_reap(table, is_below_1000, now);
        batch();
        batch();
        assert_int_equal(process_table_uid_of(table, pid), UID_INVALID);
        assert_false(process_table_knows(table, pid));
    }
    assert_true(process_table_knows(table, 1));
}

static void test_own(void **state)
{
    forks(1, 10);
    execs(10);
    program(10, HEADSTARTD);
    program(10, LOADER);
    assert_true(run_of(opens(10))->own);
    forks(10, 11); /* headstart record COMMAND */
    batch();
    batch();
    assert_true(last_run_of(opens(11))->own);
    execs(11);
    program(11, CAT);
    program(11, LOADER);
    assert_false(run_of(opens(11))->own);
    assert_true(run_of(opens(10))->own);
}

static bool only_systemd_lives(uint32_t pid)
{
    return pid == 1;
}

static void test_reap(void **state)
{
    uint32_t run;

    connector = false;
    program(10, CAT);
    program(10, LOADER);
    run = opens(10);
    now = 7000;
    process_table_reap(table, only_systemd_lives, now);
    batch();
    batch();
    assert_int_equal(opens(10), PROCESS_NONE);
    assert_int_equal(run_of(run)->end, 7000);
    assert_int_equal(application(opens(1)), SYSTEMD);
}

static uint32_t add_hundred(uint32_t object, void *arg)
{
    return object + 100;
}

static void test_new_stage(void **state)
{
    size_t n;

    forks(1, 10);
    execs(10);
    program(10, CAT);
    program(10, LOADER);
    forks(1, 20);
    execs(20);
    program(20, SCRIPT);
    program(20, LOADER);
    exits(20);
    batch();
    batch();
    batch(); /* cat has opened no library, so /proc was asked first */
    forks(1, 30);
    execs(30); /* not named yet */
    assert_int_equal(process_table_new_stage(table, add_hundred, NULL), 0);
    process_table_runs(table, &n);
    assert_int_equal(n, 3); /* systemd, cat, the new one */
    assert_int_equal(application(opens(10)), CAT + 100);
    assert_int_equal(run_of(opens(10))->start, 0);
    assert_int_equal(application(opens(1)), SYSTEMD + 100);
    program(30, SH);
    program(30, LOADER);
    assert_int_equal(application(opens(30)), SH);
}

/* Random events in any order: the counts stay consistent. */
static void test_random(void **state)
{
    enum { PIDS = 6 };
    uint64_t seed = 1;

    for (int step = 0; step < 200000; step++) {
        uint32_t pid, other;
        const ProcessRun *runs;
        size_t n, alive = 0;

        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        pid = 2 + (uint32_t)(seed >> 33) % PIDS;
        other = 2 + (uint32_t)(seed >> 40) % PIDS;
        switch ((seed >> 50) % 12) {
        case 0:
            forks(pid, other);
            break;
        case 1:
            execs(pid);
            break;
        case 2:
            exits(pid);
            break;
        case 3:
            batch();
            break;
        case 4:
            program(pid, ENV);
            break;
        case 5:
            program(pid, LOADER);
            break;
        case 6:
            program(pid, SCRIPT);
            break;
        case 7:
            assert_int_equal(process_table_add(table, pid, SH, 0, now, false), 0);
            break;
        case 8:
            process_table_lost(table);
            break;
        case 9:
            if (step % 100 == 0)
                assert_int_equal(process_table_new_stage(table, add_hundred, NULL), 0);
            break;
        default:
            opens(pid);
        }
        if (step % 50 != 0)
            continue;
        runs = process_table_runs(table, &n);
        for (size_t i = 0; i < n; i++) {
            alive += runs[i].n_processes;
            assert_true(runs[i].end >= runs[i].start);
            assert_true((runs[i].n_processes > 0) == (runs[i].end == USEC_INFINITY) ||
                        runs[i].same_as != PROCESS_NONE);
            assert_true(runs[i].n_processes == 0 || runs[i].same_as == PROCESS_NONE);
            application((uint32_t)i); /* does not loop forever */
        }
        assert_true(alive <= 1 + PIDS); /* each process is in one run */
    }
    for (uint32_t pid = 1; pid < 2 + PIDS; pid++)
        exits(pid);
    batch();
    batch();
    {
        size_t n;
        const ProcessRun *runs = process_table_runs(table, &n);

        for (size_t i = 0; i < n; i++)
            assert_int_equal(runs[i].n_processes, 0);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

static uint32_t same_object(uint32_t object, void *arg)
{
    return object;
}

/* Adds n short runs of children of the process. Returns the last run, or PROCESS_NONE if the table
 * did not record it. */
static uint32_t many_runs(uint32_t parent, uint32_t n)
{
    uint32_t run = PROCESS_NONE;

    for (uint32_t i = 0; i < n; i++) {
        forks(parent, 100);
        execs(100);
        run = program(100, SH);
        program(100, LOADER);
        exits(100);
        batch();
        batch();
    }
    return run;
}

/* Neither one user nor two can fill the table: the runs of others are still distinguished, and
 * compacting frees rows. */
static void test_shares(void **state)
{
    uint32_t other = 0, of_root = 0;
    size_t n;

    assert_int_equal(process_table_add(table, 8, CAT, 3000, 0, false), 0);
    assert_int_equal(process_table_add(table, 9, CAT, 1000, 0, false), 0);
    assert_int_equal(process_table_add(table, 10, CAT, 2000, 0, false), 0);
    assert_int_equal(many_runs(9, PROCESS_RUNS_USER_MAX + 10), PROCESS_NONE);
    assert_int_equal(many_runs(8, PROCESS_RUNS_OTHERS_MAX - PROCESS_RUNS_USER_MAX), PROCESS_NONE);
    forks(10, 101);
    execs(101);
    other = program(101, PYTHON);
    forks(1, 102);
    execs(102);
    of_root = program(102, PYTHON);
    assert_true(other != PROCESS_NONE && of_root != PROCESS_NONE);

    assert_int_equal(process_table_compact(table, UINT64_MAX, same_object, NULL), 0);
    process_table_runs(table, &n);
    assert_true(n < 20);
    forks(9, 100);
    execs(100);
    assert_true(program(100, SH) != PROCESS_NONE);
}

/* Compacting keeps the times of runs, the runs that continue or still wait to be reported, and the
 * link from each part to its run (same_as). */
static void test_compact(void **state)
{
    const ProcessRun *runs;
    uint64_t serial;
    size_t n;

    forks(1, 10);
    now = 2000;
    execs(10);
    program(10, CAT);
    forks(1, 11);
    execs(11);
    program(11, SH);
    batch();
    batch();
    exits(11);
    batch();
    batch();
    runs = process_table_runs(table, &n);
    serial = runs[n - 1].serial;
    assert_int_equal(process_table_compact(table, serial, same_object, NULL), 0);
    runs = process_table_runs(table, &n);
    assert_int_equal(runs[n - 1].serial, serial);
    for (size_t i = 0; i < n; i++)
        assert_true(runs[i].same_as == PROCESS_NONE || runs[i].same_as < n);
    assert_int_equal(process_table_compact(table, UINT64_MAX, same_object, NULL), 0);
    runs = process_table_runs(table, &n);
    assert_int_equal(n, 2); /* systemd and cat */
    assert_int_equal(runs[1].object, CAT);
    assert_int_equal(runs[1].start, 2000);
    assert_int_equal(process_table_new_stage(table, same_object, NULL), 0);
    runs = process_table_runs(table, &n);
    assert_int_equal(runs[1].start, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            TEST(test_elf),
            TEST(test_script),
            TEST(test_script_of_script),
            TEST(test_slow_execve),
            TEST(test_connector_first),
            TEST(test_fork_between_execs),
            TEST(test_all_in_one_batch),
            TEST(test_exit_first),
            TEST(test_static),
            TEST(test_env),
            TEST(test_env_of_env),
            TEST(test_without_connector),
            TEST(test_failed_execve),
            TEST(test_unwatched),
            TEST(test_unwatched_first),
            TEST(test_unwatched_before_slow_execve),
            TEST(test_unwatched_before_execve),
            TEST(test_unwatched_last),
            TEST(test_lost_events),
            TEST(test_duplicate_pids),
            TEST(test_exec_by_thread),
            TEST(test_uid),
            TEST(test_owner),
            TEST(test_forgotten),
            TEST(test_own),
            TEST(test_reap),
            TEST(test_new_stage),
            TEST(test_shares),
            TEST(test_compact),
            TEST(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
