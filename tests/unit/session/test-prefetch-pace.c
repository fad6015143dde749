/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests which facts the window of the prefetch thread gets, with files below a root directory. */

#include "session/prefetch-pace.h"

#include "base/clock.h"
#include "util/root-util.h"

#include <sys/sysmacros.h>

#define MEMINFO \
    "MemTotal: 8000000 kB\nMemFree: 10 kB\nMemAvailable: %s kB\nInactive(file): 900000 kB\n"

static void put_machine(TestRoot *root, const char *available)
{
    char text[256];

    snprintf(text, sizeof(text), MEMINFO, available);
    test_root_put(root, "proc/meminfo", text);
    test_root_put(root, "sys/dev/block/8:1/uevent", "DEVNAME=sda\n");
    test_root_put(root, "sys/class/block/sda/uevent", "DEVNAME=sda\n");
    test_root_put(root, "sys/block/sda/stat", "0\n");
}

static void the_window_is_empty_while_others_use_the_disk(void **state)
{
    TestRoot root;
    PrefetchPace p;

    (void)state;
    assert_int_equal(test_root_make(&root), 0);
    put_machine(&root, "4000000");
    p = (PrefetchPace){.root_fd = root.fd, .pressure.root_fd = root.fd};
    prefetch_pace_begin(&p);
    assert_int_equal(prefetch_pace_update(&p, makedev(8, 1), 0, 0), READ_WINDOW_FIRST_BYTES);
    assert_int_equal(p.facts.inactive_bytes, 900000 * UINT64_C(1024));
    assert_string_equal(p.inflight, "/sys/block/sda/inflight");
    test_root_put(&root, "sys/block/sda/inflight", "       1        2\n");
    assert_int_equal(prefetch_pace_update(&p, makedev(8, 1), 0, 0), 0);
    /* Our own requests, which the disk has not completed, are no reason. */
    assert_true(prefetch_pace_update(&p, makedev(8, 1), 0, 3) > 0);
    test_root_put(&root, "sys/block/sda/inflight", "nonsense\n");
    assert_true(prefetch_pace_update(&p, makedev(8, 1), 0, 0) > 0);
    assert_false(prefetch_pace_must_stop(&p));
    /* A filesystem without a block device. */
    assert_true(prefetch_pace_update(&p, makedev(0, 40), 0, 0) > 0);
    assert_null(p.inflight);
    prefetch_pace_done(&p);
    assert_int_equal(test_root_remove(&root), 0);
}

static void heat_and_short_memory_stop_the_pass(void **state)
{
    TestRoot root;
    PrefetchPace p;

    (void)state;
    assert_int_equal(test_root_make(&root), 0);
    put_machine(&root, "1000");
    p = (PrefetchPace){.root_fd = root.fd, .pressure.root_fd = root.fd};
    prefetch_pace_begin(&p);
    assert_int_equal(prefetch_pace_update(&p, 0, 0, 0), 0);
    assert_true(prefetch_pace_must_stop(&p));
    put_machine(&root, "4000000");
    prefetch_pace_begin(&p);
    assert_true(prefetch_pace_update(&p, 0, 0, 0) > 0);
    assert_false(prefetch_pace_must_stop(&p));
    test_root_put(&root, "sys/class/thermal/thermal_zone0/temp", "95000\n");
    test_root_put(&root, "sys/class/thermal/thermal_zone0/trip_point_0_type", "passive\n");
    test_root_put(&root, "sys/class/thermal/thermal_zone0/trip_point_0_temp", "95000\n");
    /* Heat that begins during a pass is noticed within a second. */
    p.facts_due = 0;
    assert_true(prefetch_pace_update(&p, 0, 0, 0) > 0);
    assert_false(prefetch_pace_must_stop(&p));
    assert_true(p.heat_due <= clock_now(CLOCK_MONOTONIC) + USEC_PER_SEC);
    p.facts_due = p.heat_due = 0;
    assert_int_equal(prefetch_pace_update(&p, 0, 0, 0), 0);
    assert_true(prefetch_pace_must_stop(&p));
    prefetch_pace_begin(&p);
    assert_false(prefetch_pace_must_stop(&p));
    assert_int_equal(prefetch_pace_update(&p, 0, 0, 0), 0);
    assert_true(prefetch_pace_must_stop(&p));
    prefetch_pace_done(&p);
    assert_int_equal(test_root_remove(&root), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_window_is_empty_while_others_use_the_disk),
            cmocka_unit_test(heat_and_short_memory_stop_the_pass),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
