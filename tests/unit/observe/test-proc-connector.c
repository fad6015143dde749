/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the times of the proc connector's events. A socket pair replaces the netlink socket, and
 * the linker wraps clock_now(). */

#include "observe/proc-connector.h"

#include "base/clock.h"
#include "base/macros.h"

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
/* needs the four headers above */
#include <cmocka.h>

#define MONOTONIC (1000 * USEC_PER_SEC)
#define PID       77

static usec_t asleep; /* how long the machine was suspended */

usec_t __wrap_clock_now(clockid_t clock);

usec_t __wrap_clock_now(clockid_t clock)
{
    return clock == CLOCK_BOOTTIME ? MONOTONIC + asleep : MONOTONIC;
}

static void send_event(int fd, struct proc_event event, usec_t monotonic)
{
    struct {
        struct nlmsghdr header;
        struct cn_msg message;
        struct proc_event event;
    } __attribute__((packed)) m;

    event.timestamp_ns = monotonic * NSEC_PER_USEC;
    memset(&m, 0, sizeof(m));
    m.header.nlmsg_len = sizeof(m);
    m.message.id.idx = CN_IDX_PROC;
    m.message.len = sizeof(event);
    m.event = event;
    assert_int_equal(send(fd, &m, sizeof(m), 0), sizeof(m));
}

static const struct proc_event execution = {
        .what = PROC_EVENT_EXEC,
        .event_data.exec = {.process_pid = PID, .process_tgid = PID},
};
static const struct proc_event process_exit = {
        .what = PROC_EVENT_EXIT,
        .event_data.exit = {.process_pid = PID, .process_tgid = PID},
};

/* Reads one execution and one exit. *ret is the run. `zero` is on CLOCK_BOOTTIME, the other times
 * are on CLOCK_MONOTONIC. */
static void one_run(usec_t zero, usec_t start, usec_t end, ProcessRun *ret)
{
    ProcessTable *t = process_table_new();
    const ProcessRun *runs;
    uint64_t lost = 0;
    int fds[2];
    size_t n;

    assert_non_null(t);
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    send_event(fds[1], execution, start);
    assert_int_equal(proc_connector_drain(fds[0], t, zero, &lost), 1);
    for (int batch = 0; batch < 3; batch++)
        process_table_settle(t, NULL, NULL);
    send_event(fds[1], process_exit, end);
    assert_int_equal(proc_connector_drain(fds[0], t, zero, &lost), 1);
    for (int batch = 0; batch < 3; batch++)
        process_table_settle(t, NULL, NULL);
    runs = process_table_runs(t, &n);
    assert_int_equal(n, 1);
    *ret = runs[0];
    assert_int_equal(lost, 0);
    process_table_free(t);
    close(fds[0]);
    close(fds[1]);
}

/* A session began a minute ago. Before it, or earlier in it, the machine was suspended. */
static void after_a_suspend(void **state)
{
    static const usec_t suspends[] = {0, 8 * USEC_PER_HOUR};
    ProcessRun run;

    (void)state;
    for (size_t i = 0; i < ELEMENTSOF(suspends); i++) {
        asleep = suspends[i];
        one_run(MONOTONIC + asleep - 60 * USEC_PER_SEC, MONOTONIC - 2 * USEC_PER_SEC, MONOTONIC,
                &run);
        assert_int_equal(run.start, 58 * USEC_PER_SEC);
        assert_int_equal(run.end, 60 * USEC_PER_SEC);
    }
    one_run(MONOTONIC - 60 * USEC_PER_SEC, MONOTONIC - 2 * USEC_PER_SEC, MONOTONIC, &run);
    assert_int_equal(run.start, 8 * USEC_PER_HOUR + 58 * USEC_PER_SEC);
}

static void before_the_stage(void **state)
{
    ProcessRun run;

    (void)state;
    asleep = 8 * USEC_PER_HOUR;
    one_run(MONOTONIC + asleep - USEC_PER_SEC, MONOTONIC - 2 * USEC_PER_SEC, MONOTONIC, &run);
    assert_int_equal(run.start, 0);
    assert_int_equal(run.end, USEC_PER_SEC);
}

/* The clocks are not read at the same instant, so that CLOCK_BOOTTIME may seem to be behind. */
static void clocks_out_of_step(void **state)
{
    ProcessRun run;

    (void)state;
    asleep = (usec_t)0 - 3;
    one_run(MONOTONIC - 60 * USEC_PER_SEC, MONOTONIC - 2 * USEC_PER_SEC, MONOTONIC, &run);
    assert_int_equal(run.start, 58 * USEC_PER_SEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(after_a_suspend),
            cmocka_unit_test(before_the_stage),
            cmocka_unit_test(clocks_out_of_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
