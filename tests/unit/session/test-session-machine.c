/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests, with files below a root directory, the facts about the machine that the session cycle
 * reads: session/machine.h. Also tests that the prefetch thread opens only permitted files. */

#include "base/clock.h"
#include "session/machine.h"
#include "session/prefetch-thread.h"
#include "util/root-util.h"

#include <fcntl.h>
#include <string.h>

static int set_up(void **state)
{
    TestRoot *root = calloc(1, sizeof(*root));

    *state = root;
    return root ? test_root_make(root) : -1;
}

static int tear_down(void **state)
{
    int r = test_root_remove(*state);

    free(*state);
    return r;
}

#define SUPPLY "sys/class/power_supply/"

static void test_battery(void **state)
{
    TestRoot *root = *state;

    assert_false(machine_on_battery(root->fd)); /* the file does not exist */
    test_root_put(root, SUPPLY "BAT0/type", "Battery\n");
    test_root_put(root, SUPPLY "BAT0/status", "Discharging\n");
    assert_true(machine_on_battery(root->fd));
    test_root_put(root, SUPPLY "AC/type", "Mains\n");
    test_root_put(root, SUPPLY "AC/online", "0\n");
    assert_true(machine_on_battery(root->fd));
    test_root_put(root, SUPPLY "AC/online", "1\n");
    assert_false(machine_on_battery(root->fd));
    test_root_put(root, SUPPLY "AC/online", "0\n");
    test_root_put(root, SUPPLY "ucsi/type", "USB\n");
    test_root_put(root, SUPPLY "ucsi/online", "1\n");
    assert_false(machine_on_battery(root->fd));
    test_root_put(root, SUPPLY "ucsi/online", "0\n");
    test_root_put(root, SUPPLY "BAT0/status", "Full\n");
    assert_false(machine_on_battery(root->fd));
}

/* The battery or charger of a mouse does not count. */
static void test_devices(void **state)
{
    TestRoot *root = *state;

    test_root_put(root, SUPPLY "mouse/type", "Battery\n");
    test_root_put(root, SUPPLY "mouse/scope", "Device\n");
    test_root_put(root, SUPPLY "mouse/status", "Discharging\n");
    assert_false(machine_on_battery(root->fd));
    test_root_put(root, SUPPLY "BAT0/type", "Battery\n");
    test_root_put(root, SUPPLY "BAT0/status", "Discharging\n");
    test_root_put(root, SUPPLY "pad/type", "USB\n");
    test_root_put(root, SUPPLY "pad/scope", "Device\n");
    test_root_put(root, SUPPLY "pad/online", "1\n");
    assert_true(machine_on_battery(root->fd));
}

static void test_snapshot(void **state)
{
    TestRoot *root = *state;
    CycleSnapshot s;

    assert_int_equal(machine_snapshot(root->fd, &s), -ENOENT);
    test_root_put(root, "proc/meminfo", "MemTotal: 100 kB\nMemFree: 40 kB\nMemAvailable: 60 kB\n");
    assert_int_equal(machine_snapshot(root->fd, &s), 0);
    assert_int_equal(s.memory.available_bytes, 60 * 1024);
    assert_true(s.memory_pressure == 0); /* no PSI in this fixture */
    test_root_put(
            root, "proc/pressure/memory",
            "some avg10=12.50 avg60=0.00 avg300=0.00 total=5\nfull avg10=1.00 avg60=0 avg300=0 total=0\n");
    assert_int_equal(machine_snapshot(root->fd, &s), 0);
    assert_true(s.memory_pressure == 12.5);
    assert_false(s.hot);
    test_root_put(root, "sys/class/thermal/thermal_zone0/temp", "90000\n");
    test_root_put(root, "sys/class/thermal/thermal_zone0/trip_point_0_type", "passive\n");
    test_root_put(root, "sys/class/thermal/thermal_zone0/trip_point_0_temp", "90000\n");
    assert_int_equal(machine_snapshot(root->fd, &s), 0);
    assert_true(s.hot);
    test_root_put(root, "proc/pressure/memory", "some avg10=nan\n");
    assert_true(machine_memory_pressure(root->fd) == 0);
    test_root_put(root, "proc/meminfo", "nonsense\n");
    assert_int_equal(machine_snapshot(root->fd, &s), -EBADMSG);
}

/* Waits until the thread has executed all requests, and returns its report. */
static PrefetchReport settle(PrefetchThread *r)
{
    usec_t end = clock_now(CLOCK_MONOTONIC) + 20 * USEC_PER_SEC;
    PrefetchReport report;

    do {
        usleep(1000);
        prefetch_thread_report(r, &report);
    } while (report.working && clock_now(CLOCK_MONOTONIC) < end);
    assert_false(report.working);
    return report;
}

/* Makes requests for missing files, for files that are not regular, and for invalid ranges. New
 * requests come while the old ones are under way. The thread ends while the last requests are under
 * way. */
static void test_prefetch_hostile(void **state)
{
    static const char no_uuid[] = ""; /* requests of one file have the same pointer */
    const PrefetchRequest requests[] = {
            {.path = "/nowhere", .range = {0, 100}},
            {.path = "/proc/self/mem", .range = {0, 4096}},
            {.path = "/dev/zero", .range = {0, UINT64_MAX}},
            {.path = "/", .kind = PREFETCH_DIRECTORY},
            {.path = "/../../x", .range = {UINT64_MAX, UINT64_MAX}},
            {.path = "", .range = {0, 1}},
            {.path = "no-such-uuid", .range = {0, UINT64_MAX}, .kind = PREFETCH_METADATA},
            {.path = no_uuid, .range = {0, 4096}, .kind = PREFETCH_METADATA},
    };
    PrefetchThread *r;
    PrefetchReport report;
    uint64_t before;

    assert_int_equal(prefetch_thread_new("/", 0, &r), 0);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(prefetch_thread_request(r, requests, i % 7 > 5 ? 0 : i % 7), 0);
    report = settle(r);
    before = report.n_skipped;
    assert_int_equal(prefetch_thread_request(r, requests, ELEMENTSOF(requests)), 0);
    report = settle(r);
    assert_int_equal(report.n_skipped - before, ELEMENTSOF(requests) - 1); /* only "/" is read */
    assert_int_equal(report.read_bytes, 0);
    assert_int_equal(prefetch_thread_request(r, requests, 3), 0);
    assert_null(prefetch_thread_free(r));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
            TEST(test_battery),
            TEST(test_devices),
            TEST(test_snapshot),
            TEST(test_prefetch_hostile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
