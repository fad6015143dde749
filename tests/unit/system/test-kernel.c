/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests what is read below /proc: system/kernel.h. */

#include "system/kernel.h"
#include "util/root-util.h"

#include <sys/stat.h>

static TestRoot root;

static int set_up(void **state)
{
    return test_root_make(&root);
}

static int tear_down(void **state)
{
    return test_root_remove(&root);
}

static void the_kernel_is_asked_below_a_root(void **state)
{
    char id[KERNEL_BOOT_ID_SIZE] = "untouched";

    assert_int_equal(mkdirat(root.fd, "proc", 0700), 0);
    assert_int_equal(mkdirat(root.fd, "proc/sys", 0700), 0);
    assert_int_equal(mkdirat(root.fd, "proc/sys/kernel", 0700), 0);
    assert_int_equal(mkdirat(root.fd, "proc/sys/kernel/random", 0700), 0);
    assert_int_equal(kernel_boot_id(root.fd, id), -ENOENT);
    test_root_put(&root, "proc/sys/kernel/random/boot_id",
                  "00112233-4455-6677-8899-aabbccddeeff\n");
    assert_int_equal(kernel_boot_id(root.fd, id), 0);
    assert_string_equal(id, "00112233445566778899aabbccddeeff");
    test_root_put(&root, "proc/sys/kernel/random/boot_id", "0011\n");
    assert_int_equal(kernel_boot_id(root.fd, id), -EBADMSG);
    assert_string_equal(id, "00112233445566778899aabbccddeeff");
    assert_false(kernel_command_line_has(root.fd, "quiet"));
    test_root_put(&root, "proc/cmdline", "root=/dev/sda2 quiet headstart=01\n");
    assert_true(kernel_command_line_has(root.fd, "quiet"));
    assert_false(kernel_command_line_has(root.fd, "headstart=0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_kernel_is_asked_below_a_root),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
