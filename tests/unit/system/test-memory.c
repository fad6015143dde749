/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the reader of /proc/meminfo. */

#include "system/memory.h"
#include "util/root-util.h"

#include <unistd.h>

static void the_memory_of_the_machine(void **state)
{
    TestRoot root;
    MemoryFacts m;

    assert_int_equal(test_root_make(&root), 0);
    assert_int_equal(memory_facts_read(root.fd, &m), -ENOENT);
    test_root_put(&root, "proc/meminfo",
                  "MemTotal:  1000 kB\nMemFree:  500 kB\nMemAvailable: 800 kB\nCached: 100 kB\n");
    assert_int_equal(memory_facts_read(root.fd, &m), 0);
    assert_int_equal(m.total_bytes, 1000 * 1024);
    assert_int_equal(m.free_bytes, 500 * 1024);
    assert_int_equal(m.available_bytes, 800 * 1024);
    assert_int_equal(m.cached_bytes, 100 * 1024);
    test_root_put(&root, "proc/meminfo", "MemTotal: 1000 kB\nMemFree: 500 kB\n");
    assert_int_equal(memory_facts_read(root.fd, &m), 0);
    assert_int_equal(m.available_bytes, 0); /* not reported */
    assert_int_equal(test_root_remove(&root), 0);
}

static void the_limits_of_the_control_groups(void **state)
{
    TestRoot root;
    MemoryFacts m;

    assert_int_equal(test_root_make(&root), 0);
    test_root_put(&root, "proc/meminfo",
                  "MemTotal: 1000 kB\nMemFree: 500 kB\nMemAvailable: 800 kB\nCached: 100 kB\n");
    /* Version 1 beside version 2, as on a hybrid machine; the groups have no limit. */
    test_root_put(&root, "proc/self/cgroup", "4:memory:/x\n0::/a.slice/b.service\n");
    test_root_put(&root, "sys/fs/cgroup/a.slice/b.service/memory.max", "max\n");
    assert_int_equal(memory_facts_read_own(root.fd, &m), 0);
    assert_int_equal(m.total_bytes, 1000 * 1024);
    assert_int_equal(m.available_bytes, 800 * 1024);
    assert_false(memory_facts_are_short(&m));
    /* The limit of the slice counts for the service. Of 390 KiB, 100 KiB can be reclaimed. */
    test_root_put(&root, "sys/fs/cgroup/a.slice/memory.max", "409600\n");
    test_root_put(&root, "sys/fs/cgroup/a.slice/memory.current", "399360\n");
    test_root_put(&root, "sys/fs/cgroup/a.slice/memory.stat",
                  "anon 5\ninactive_file 102400\nactive_file 1\n");
    assert_int_equal(memory_facts_read_own(root.fd, &m), 0);
    assert_int_equal(m.total_bytes, 400 * 1024);
    assert_int_equal(m.free_bytes, 10 * 1024);
    assert_int_equal(m.available_bytes, 110 * 1024);
    assert_false(memory_facts_are_short(&m));
    /* memory.high of the service is lower, and more is used than it allows. */
    test_root_put(&root, "sys/fs/cgroup/a.slice/b.service/memory.high", "204800\n");
    test_root_put(&root, "sys/fs/cgroup/a.slice/b.service/memory.current", "300000\n");
    test_root_put(&root, "sys/fs/cgroup/a.slice/b.service/memory.stat", "inactive_file 4096\n");
    assert_int_equal(memory_facts_read_own(root.fd, &m), 0);
    assert_int_equal(m.total_bytes, 200 * 1024);
    assert_int_equal(m.free_bytes, 0);
    assert_int_equal(m.available_bytes, 4096);
    assert_true(memory_facts_are_short(&m));
    /* Nothing is left: that is short, and not the 0 of an unknown number. */
    test_root_put(&root, "sys/fs/cgroup/a.slice/b.service/memory.stat", "inactive_file 0\n");
    assert_int_equal(memory_facts_read_own(root.fd, &m), 0);
    assert_true(memory_facts_are_short(&m));
    m.available_bytes = 0; /* not reported */
    assert_false(memory_facts_are_short(&m));
    assert_int_equal(test_root_remove(&root), 0);
}

static void the_page_cache_of_the_lowest_limit(void **state)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    TestRoot root;
    CacheFacts f;

    assert_int_equal(test_root_make(&root), 0);
    assert_int_equal(cache_facts_read_own(root.fd, &f), -ENOENT);
    test_root_put(&root, "proc/meminfo", "MemTotal: 1000 kB\nInactive(file): 30 kB\n");
    assert_int_equal(cache_facts_read_own(root.fd, &f), 0);
    assert_int_equal(f.inactive_bytes, 30 * 1024);
    assert_int_equal(f.evicted_bytes, 0); /* the kernel does not count it */
    test_root_put(&root, "proc/vmstat",
                  "nr_free 1\nworkingset_refault_file 3\npgsteal_anon 9\npgsteal_file 7\n");
    test_root_put(&root, "proc/self/cgroup", "0::/a.slice/b.service\n");
    assert_int_equal(cache_facts_read_own(root.fd, &f), 0);
    assert_int_equal(f.evicted_bytes, 7 * page);
    assert_int_equal(f.refaulted_bytes, 3 * page);
    /* The slice has the lowest limit. A group without a limit does not count. */
    test_root_put(&root, "sys/fs/cgroup/a.slice/b.service/memory.max", "max\n");
    test_root_put(&root, "sys/fs/cgroup/a.slice/b.service/memory.stat", "inactive_file 1\n");
    test_root_put(&root, "sys/fs/cgroup/a.slice/memory.high", "409600\n");
    test_root_put(&root, "sys/fs/cgroup/a.slice/memory.stat",
                  "inactive_file 8192\nworkingset_refault_file 2\npgsteal 5\npgsteal_direct 1\n");
    assert_int_equal(cache_facts_read_own(root.fd, &f), 0);
    assert_int_equal(f.inactive_bytes, 8192);
    assert_int_equal(f.evicted_bytes, 5 * page);
    assert_int_equal(f.refaulted_bytes, 2 * page);
    /* Version 1 does not count evicted pages: those of the machine stay. */
    cache_facts_apply_group("inactive_file 4096\nworkingset_refault_file 6\n", &f);
    assert_int_equal(f.inactive_bytes, 4096);
    assert_int_equal(f.evicted_bytes, 5 * page);
    assert_int_equal(f.refaulted_bytes, 6 * page);
    assert_int_equal(test_root_remove(&root), 0);
}

static void bad_texts_are_refused(void **state)
{
    MemoryFacts m;

    assert_int_equal(memory_facts_parse("", &m), -EBADMSG);
    assert_int_equal(memory_facts_parse("MemTotal: x kB\nMemFree: 1 kB\n", &m), -EBADMSG);
    assert_int_equal(memory_facts_parse("MemTotal: 99999999999999999999 kB\nMemFree: 1 kB\n", &m),
                     -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_memory_of_the_machine),
            cmocka_unit_test(the_limits_of_the_control_groups),
            cmocka_unit_test(the_page_cache_of_the_lowest_limit),
            cmocka_unit_test(bad_texts_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
