/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests waiting for a quiet disk. The facts about disks come from files below a root directory. */

#include "base/clock.h"
#include "replay/settle.h"
#include "util/root-util.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define FOREVER (3600 * USEC_PER_SEC)

static TestRoot root;
static sigset_t signals;

static int set_up(void **state)
{
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    return test_root_make(&root);
}

static int tear_down(void **state)
{
    return test_root_remove(&root);
}

/* The tests run in the order of this file. In the first, no file with facts about disks exists. */
static void no_news_of_disks(void **state)
{
    assert_int_equal(settle(root.fd, FOREVER, &signals), 0);
}

static void quiet(void **state)
{
    static const char text[] = "some avg10=0.00 avg60=0.00 avg300=0.00 total=5000\n";
    usec_t start;

    test_root_put(&root, "proc/pressure/io", text);
    start = clock_now(CLOCK_MONOTONIC);
    assert_int_equal(settle(root.fd, FOREVER, &signals), 0);
    assert_true(clock_now(CLOCK_MONOTONIC) - start >= SETTLE_QUIET_USEC);
}

static void bounded(void **state)
{
    usec_t start = clock_now(CLOCK_MONOTONIC);

    assert_int_equal(settle(root.fd, SETTLE_SAMPLE_USEC, &signals), 0);
    assert_true(clock_now(CLOCK_MONOTONIC) - start >= SETTLE_SAMPLE_USEC);
}

/* A login that begins, or the end of the service, ends the wait. */
static void ended_by_signals(void **state)
{
    raise(SIGUSR1);
    assert_int_equal(settle(root.fd, FOREVER, &signals), SIGUSR1);
    raise(SIGTERM);
    assert_int_equal(settle(root.fd, FOREVER, &signals), SIGTERM);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
            cmocka_unit_test(no_news_of_disks),
            cmocka_unit_test(quiet),
            cmocka_unit_test(bounded),
            cmocka_unit_test(ended_by_signals),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
