/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests that a thread that samples the page cache for a long time is left behind, and that it frees
 * everything when it ends; and how often it reads a pack. */

#include "base/clock.h"
#include "base/uid.h"
#include "session/launch-control.h"
#include "session/launch-thread.h"
#include "state/launch-packs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define SAMPLE_USEC (3 * USEC_PER_SEC)

static struct {
    atomic_bool slow;
    atomic_uint n_begun, n_freed;
    uint64_t read[1024]; /* the applications whose pack was read; used by the thread alone */
    atomic_uint n_read;
} fake;

usec_t __wrap_launch_controls_end(LaunchControls *c, const VolumeTable *t, usec_t now);
LaunchControls *__real_launch_controls_free(LaunchControls *c);
LaunchControls *__wrap_launch_controls_free(LaunchControls *c);

int __wrap_launch_pack_read_header(int state_fd, uint32_t uid, uint64_t hash, PackHeader *ret);
int __wrap_launch_pack_read(int state_fd, uint32_t uid, uint64_t hash, char **ret_buf, Pack *ret);

int __wrap_launch_pack_read_header(int state_fd, uint32_t uid, uint64_t hash, PackHeader *ret)
{
    (void)state_fd;
    (void)uid;
    (void)hash;
    *ret = (PackHeader){.policy = POLICY_CONCURRENT};
    return 0;
}

/* Each application has a pack without files, and each start is a control start. */
int __wrap_launch_pack_read(int state_fd, uint32_t uid, uint64_t hash, char **ret_buf, Pack *ret)
{
    PackHeader *h = calloc(1, sizeof(*h));

    (void)state_fd;
    (void)uid;
    h->policy = POLICY_CONCURRENT;
    h->control_interval = htole32(1);
    *ret_buf = (char *)h;
    *ret = (Pack){.header = h};
    fake.read[fake.n_read % ELEMENTSOF(fake.read)] = hash;
    atomic_fetch_add(&fake.n_read, 1);
    return 0;
}

usec_t __wrap_launch_controls_end(LaunchControls *c, const VolumeTable *t, usec_t now)
{
    (void)c;
    (void)t;
    atomic_fetch_add(&fake.n_begun, 1);
    if (fake.slow)
        usleep(SAMPLE_USEC);
    return now; /* the next one is due at once */
}

LaunchControls *__wrap_launch_controls_free(LaunchControls *c)
{
    atomic_fetch_add(&fake.n_freed, 1);
    return __real_launch_controls_free(c);
}

/* Waits until *count has this value, for at most ten seconds. */
static bool reaches(atomic_uint *count, unsigned value)
{
    for (unsigned i = 0; i < 1000 && atomic_load(count) < value; i++)
        usleep(10000);
    return atomic_load(count) >= value;
}

static void a_slow_thread_frees_everything_itself(void **state)
{
    const LaunchOptions o = {
            .root = "/", .state = "/", .uid = UID_INVALID, .maximum_pressure = 100};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        LaunchThread *t = NULL;
        usec_t begin;

        fake.slow = i == 1;
        fake.n_begun = fake.n_freed = 0;
        if (launch_thread_new(&o, &t) < 0)
            skip(); /* no fanotify: not root, or qemu-user */
        /* The first event is an execution. */
        for (unsigned k = 0; k < 100 && fake.n_begun == 0; k++) {
            assert_int_equal(system("/bin/true"), 0);
            usleep(10000);
        }
        assert_true(fake.n_begun > 0);
        begin = clock_now(CLOCK_MONOTONIC);
        launch_thread_free(t);
        assert_in_range(clock_now(CLOCK_MONOTONIC) - begin, 0, SAMPLE_USEC - USEC_PER_SEC / 2);
        assert_int_equal(fake.n_freed, i == 0);
        assert_true(reaches(&fake.n_freed, 1));
    }
}

/* Returns how often the pack that was read most often was read. */
static unsigned most_reads(void)
{
    unsigned n = MIN(fake.n_read, (unsigned)ELEMENTSOF(fake.read)), most = 0;

    for (unsigned i = 0; i < n; i++) {
        unsigned same = 0;

        for (unsigned k = 0; k < n; k++)
            same += fake.read[k] == fake.read[i];
        most = MAX(most, same);
    }
    return most;
}

/* A user who starts a program in a loop does not keep the thread busy with reading its pack. */
static void quick_starts_read_a_pack_once(void **state)
{
    const LaunchOptions o = {
            .root = "/", .state = "/", .uid = UID_INVALID, .maximum_pressure = 100};
    LaunchThread *t = NULL;
    LaunchReport report;
    uint64_t n_control;

    (void)state;
    fake.slow = false;
    if (launch_thread_new(&o, &t) < 0)
        skip(); /* no fanotify: not root, or qemu-user */
    fake.n_read = 0;
    assert_int_equal(system("i=0; while [ $i -lt 40 ]; do sleep 0.5 & i=$((i + 1)); done; wait"),
                     0);
    launch_thread_report(t, &report);
    assert_true(report.n_starts > 0);
    assert_in_range(most_reads(), 1, 10);
    /* The trace of another user has no control start. */
    assert_true(report.n_control > 0);
    assert_true(report.n_control_uids > 0);
    assert_true(launch_report_has_control(&report, report.control_uids[0]));
    assert_true(launch_report_has_control(&report, UID_INVALID));
    assert_false(launch_report_has_control(&report, 4000000));
    /* Nobody learns from a control start after the recording, so the set is read. */
    launch_thread_end_recording(t);
    n_control = report.n_control;
    for (unsigned k = 0; k < 100 && report.n_replayed == 0; k++) {
        assert_int_equal(system("/bin/true"), 0);
        usleep(10000);
        launch_thread_report(t, &report);
    }
    launch_thread_free(t);
    assert_true(report.n_replayed > 0);
    assert_int_equal(report.n_control, n_control);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_slow_thread_frees_everything_itself),
            cmocka_unit_test(quick_starts_read_a_pack_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
