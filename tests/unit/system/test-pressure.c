/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests how I/O waits and processor time are read from the files below a root directory. */

#include "base/time-util.h"
#include "system/cpu-busy.h"
#include "system/pressure.h"
#include "util/root-util.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static TestRoot root;

static int set_up(void **state)
{
    return test_root_make(&root);
}

static int tear_down(void **state)
{
    return test_root_remove(&root);
}

static void put(const char *path, const char *text)
{
    test_root_put(&root, path, text);
}

static void put_total(const char *path, uint64_t total)
{
    char text[200];

    snprintf(text, sizeof(text),
             "some avg10=1.00 avg60=0.10 avg300=0.00 total=%llu\n"
             "full avg10=0.00 avg60=0.00 avg300=0.00 total=99999999\n",
             (unsigned long long)total);
    put(path, text);
}

/* The tests run in this order: first no source exists, then disks, then pressure as well. */
static void nothing(void **state)
{
    Pressure p = {.root_fd = root.fd};
    uint64_t sum = 7;

    assert_int_equal(pressure_read(&p, &sum), -ENOENT);
    assert_int_equal(sum, 7);
    put("proc/pressure/io", "none of it\n");
    assert_true(pressure_read(&p, &sum) < 0);
    unlinkat(root.fd, "proc/pressure/io", 0);
}

static void disks(void **state)
{
    static const char format[] = "   8       0 sda 1 2 3 4 5 6 7 8 0 %u 11 0 0 0 0 0 0\n"
                                 "   8       1 sda1 1 2 3 4 5 6 7 8 0 %u 11\n"
                                 "   7       0 loop0 1 2 3 4 5 6 7 8 0 %u 11\n"
                                 " 253       0 dm-0 1 2 3 4 5 6 7 8 0 %u 11\n"
                                 "   8      16 ../../etc 1 2 3 4 5 6 7 8 0 %u 11\nshort\n";
    Pressure p = {.root_fd = root.fd};
    char text[1000];
    uint64_t sum;

    put("sys/block/sda/stat", "");
    put("sys/block/loop0/stat", "");
    for (unsigned busy = 100; busy <= 400; busy += 100) {
        snprintf(text, sizeof(text), format, busy, busy, busy, busy, busy);
        put("proc/diskstats", text);
        assert_int_equal(pressure_read(&p, &sum), 0);
        assert_int_equal(sum, (busy - 100) * 1000);
    }
}

/* Without pressure information, the time in which disks are busy counts, but not the share of
 * replay in the bytes that were read. */
static void disks_of_our_own(void **state)
{
    static const char group[] =
            "sys/fs/cgroup/system.slice/headstart-replay-login.service/cgroup.procs";
    Pressure p = {.root_fd = root.fd};
    char text[100];
    uint64_t sum;

    for (unsigned step = 1; step <= 4; step++) {
        snprintf(text, sizeof(text), "   8       0 sda 1 2 8 4 5 6 7 8 0 %u 11\n", step * 100);
        put("proc/diskstats", text);
        /* Replay settles, reads, finishes, and is gone. */
        put(group, step < 4 ? "77\n78\n" : "");
        put("proc/77/io", step == 1 ? "rchar: 1\nread_bytes: 0\n" : "rchar: 1\nread_bytes: 4096\n");
        assert_int_equal(pressure_read(&p, &sum), 0);
        assert_int_equal(sum, step <= 2 ? 0 : (step - 2) * 100000);
    }
    unlinkat(root.fd, group, 0);
}

/* Replay reads 4096 of the 16384 bytes that the disk reads, and later more than the disk. */
static void disks_of_all(void **state)
{
    static const char group[] = "sys/fs/cgroup/system.slice/headstart-plan.service/cgroup.procs";
    static const unsigned sectors[] = {8, 40, 48}, bytes[] = {0, 4096, 12288},
                          expected[] = {0, 75000, 75000};
    Pressure p = {.root_fd = root.fd};
    char text[100];
    uint64_t sum;

    put(group, "79\n");
    for (unsigned step = 0; step < ELEMENTSOF(sectors); step++) {
        snprintf(text, sizeof(text), "   8       0 sda 1 2 %u 4 5 6 7 8 0 %u 11\n", sectors[step],
                 step * 100);
        put("proc/diskstats", text);
        snprintf(text, sizeof(text), "rchar: 1\nread_bytes: %u\n", bytes[step]);
        put("proc/79/io", text);
        assert_int_equal(pressure_read(&p, &sum), 0);
        assert_int_equal(sum, expected[step]);
    }
    unlinkat(root.fd, group, 0);
}

/* Tasks of headstart and of a user wait at the same time: the user's tasks count. */
static void pressure_of_users(void **state)
{
    static const char own[] = "sys/fs/cgroup/system.slice/headstart-plan.service/io.pressure";
    static const char users[] = "sys/fs/cgroup/user.slice/io.pressure";
    Pressure p = {.root_fd = root.fd};
    uint64_t sum;

    put_total("proc/pressure/io", 5000);
    put_total(own, 100);
    put_total(users, 200);
    assert_int_equal(pressure_read(&p, &sum), 0);
    put_total("proc/pressure/io", 6000);
    put_total(own, 1100);
    put_total(users, 1000);
    assert_int_equal(pressure_read(&p, &sum), 0);
    assert_int_equal(sum, 800);
    /* The files are not read at the same moment: no more than the whole time counts. */
    put_total("proc/pressure/io", 6500);
    put_total(users, 1600);
    assert_int_equal(pressure_read(&p, &sum), 0);
    assert_int_equal(sum, 1300);
    /* The last user has logged out, and the group is new. */
    put_total("proc/pressure/io", 7000);
    put_total(own, 1600);
    put_total(users, 10);
    assert_int_equal(pressure_read(&p, &sum), 0);
    assert_int_equal(sum, 1300);
    unlinkat(root.fd, own, 0);
    unlinkat(root.fd, users, 0);
}

static void put_bytes(const char *path, unsigned read_bytes)
{
    char text[100];

    snprintf(text, sizeof(text), "rchar: 1\nread_bytes: %u\n", read_bytes);
    put(path, text);
}

/* The replay of headstart-init is in the group of PID 1. While it runs, the waits of the group are
 * not counted. Those of PID 1 alone are. */
static void pressure_of_early_replay(void **state)
{
    static const char group[] = "sys/fs/cgroup/init.scope/io.pressure";
    static const char *const processes[] = {"1\n80\n", "1\n80\n", "1\n", "1\n"};
    static const unsigned expected[] = {0, 200, 400, 1400};
    Pressure p = {.root_fd = root.fd};
    uint64_t sum;

    put("proc/1/comm", "systemd\n");
    put("proc/80/comm", "headstart-repla\n");
    for (unsigned step = 0; step < ELEMENTSOF(expected); step++) {
        put_total("proc/pressure/io", 5000 + step * 1000);
        put("sys/fs/cgroup/init.scope/cgroup.procs", processes[step]);
        put_total(group, 100 + step * 800);
        assert_int_equal(pressure_read(&p, &sum), 0);
        assert_int_equal(sum, expected[step]);
    }
    unlinkat(root.fd, group, 0);
    unlinkat(root.fd, "sys/fs/cgroup/init.scope/cgroup.procs", 0);
}

/* PID 1 has waited for children that have read much more than the disk since the last call. */
static void disks_of_early_replay(void **state)
{
    static const char group[] = "sys/fs/cgroup/init.scope/cgroup.procs";
    Pressure p = {.root_fd = root.fd};
    char text[100];
    uint64_t sum;

    put("proc/1/comm", "systemd\n");
    put("proc/80/comm", "headstart-repla\n");
    for (unsigned step = 0; step < 3; step++) {
        snprintf(text, sizeof(text), "   8       0 sda 1 2 %u 4 5 6 7 8 0 %u 11\n", 8 + step * 32,
                 step * 100);
        put("proc/diskstats", text);
        put(group, step < 2 ? "1\n80\n" : "1\n");
        put_bytes("proc/1/io", step * 1000000);
        put_bytes("proc/80/io", step * 4096);
        assert_int_equal(pressure_read(&p, &sum), 0);
        assert_int_equal(sum, step == 0 ? 0 : step == 1 ? 75000 : 175000);
    }
    unlinkat(root.fd, group, 0);
}

static void pressure(void **state)
{
    static const char own[] =
            "sys/fs/cgroup/system.slice/headstart-replay-login.service/io.pressure";
    Pressure p = {.root_fd = root.fd};
    uint64_t sum;

    put_total("proc/pressure/io", 5000);
    assert_int_equal(pressure_read(&p, &sum), 0);
    assert_int_equal(sum, 0);
    put_total("proc/pressure/io", 5700);
    assert_int_equal(pressure_read(&p, &sum), 0);
    assert_int_equal(sum, 700);
    /* The waits of replay are not counted. When replay ends, the file with its sum disappears, and
     * the waits of other tasks still count. */
    put_total("proc/pressure/io", 6700);
    put_total(own, 900);
    assert_int_equal(pressure_read(&p, &sum), 0);
    assert_int_equal(sum, 800);
    put_total("proc/pressure/io", 7000);
    put_total(own, 2900); /* more than the total, because several tasks wait at the same time */
    assert_int_equal(pressure_read(&p, &sum), 0);
    assert_int_equal(sum, 800);
    unlinkat(root.fd, own, 0);
    put_total("proc/pressure/io", 7100);
    assert_int_equal(pressure_read(&p, &sum), 0);
    assert_int_equal(sum, 900);
    /* The sum never decreases. */
    put_total("proc/pressure/io", 10);
    assert_int_equal(pressure_read(&p, &sum), 0);
    assert_int_equal(sum, 900);
    put_total("proc/pressure/io", 30);
    assert_int_equal(pressure_read(&p, &sum), 0);
    assert_int_equal(sum, 920);
}

static void processors(void **state)
{
    uint64_t busy = 7;

    assert_int_equal(cpu_busy_read(root.fd, &busy), -ENOENT);
    put("proc/stat", "nothing\n");
    assert_int_equal(cpu_busy_read(root.fd, &busy), -EBADMSG);
    assert_int_equal(busy, 7);
    put("proc/stat", "cpu  150 4000 50 9000 800 7 8 9 0 0\ncpu0 75 2000 25 4500 400 3 4 4 0 0\n");
    assert_int_equal(cpu_busy_read(root.fd, &busy), 0);
    assert_int_equal(busy, 200 * USEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
            cmocka_unit_test(nothing),
            cmocka_unit_test(disks),
            cmocka_unit_test(disks_of_our_own),
            cmocka_unit_test(disks_of_all),
            cmocka_unit_test(disks_of_early_replay),
            cmocka_unit_test(pressure_of_users),
            cmocka_unit_test(pressure_of_early_replay),
            cmocka_unit_test(pressure),
            cmocka_unit_test(processors),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
