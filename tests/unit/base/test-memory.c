/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the reader of /proc/meminfo. */

#include "base/memory.h"
#include "util/root-util.h"

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
            cmocka_unit_test(bad_texts_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
