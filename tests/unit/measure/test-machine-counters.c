/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the facts of the machine in the history, with files below a root directory. */

#include "measure/machine-counters.h"

#include "util/root-util.h"

#include <string.h>

/* A disk with one partition, which is the root filesystem. */
static void put_disk(TestRoot *root, const char *name, const char *serial)
{
    char path[128], text[128];

    snprintf(text, sizeof(text), "DEVNAME=%s1\n", name);
    test_root_put(root, "sys/dev/block/8:1/uevent", text);
    snprintf(path, sizeof(path), "sys/class/block/%s1/slaves/%s/size", name, name);
    test_root_put(root, path, "");
    snprintf(path, sizeof(path), "sys/class/block/%s/size", name);
    test_root_put(root, path, "1000\n");
    snprintf(path, sizeof(path), "sys/class/block/%s/serial", name);
    test_root_put(root, path, serial);
}

static void the_disk_is_known_by_its_hardware(void **state)
{
    char one[MACHINE_DISK_SIZE], other[MACHINE_DISK_SIZE];
    TestRoot root;

    (void)state;
    assert_int_equal(test_root_make(&root), 0);
    machine_disk(root.fd, one);
    assert_string_equal(one, "");
    test_root_put(&root, "proc/self/mountinfo", "29 1 8:1 / / rw shared:1 - ext4 /dev/root rw\n");
    machine_disk(root.fd, one);
    assert_string_equal(one, "");
    put_disk(&root, "sda", "S1\n");
    machine_disk(root.fd, one);
    assert_int_equal(strspn(one, "0123456789abcdef"), 16);
    /* The next boot finds the disk under another name. */
    put_disk(&root, "sdb", "S1\n");
    machine_disk(root.fd, other);
    assert_string_equal(one, other);
    put_disk(&root, "sdb", "S2\n");
    machine_disk(root.fd, other);
    assert_string_not_equal(one, other);
    /* Without a serial number, the name does not count either. */
    put_disk(&root, "sda", "\n");
    machine_disk(root.fd, one);
    put_disk(&root, "sdb", "\n");
    machine_disk(root.fd, other);
    assert_int_equal(strlen(one), 16);
    assert_string_equal(one, other);
    assert_int_equal(test_root_remove(&root), 0);
}

/* The source of a btrfs on LUKS or LVM names a device of device-mapper, and sysfs another name. */
static void the_disk_of_a_mapped_btrfs_is_known(void **state)
{
    char disk[MACHINE_DISK_SIZE];
    TestRoot root;

    (void)state;
    assert_int_equal(test_root_make(&root), 0);
    test_root_put(&root, "proc/self/mountinfo",
                  "29 1 0:30 /@ / rw shared:1 - btrfs /dev/mapper/luks-1 rw,subvol=/@\n");
    test_root_put(&root, "sys/class/block/dm-0/dm/name", "luks-1\n");
    test_root_put(&root, "sys/class/block/dm-0/dev", "253:0\n");
    test_root_put(&root, "sys/dev/block/253:0/uevent", "DEVNAME=dm-0\n");
    test_root_put(&root, "sys/class/block/dm-0/slaves/sda/size", "");
    test_root_put(&root, "sys/class/block/sda/size", "1000\n");
    test_root_put(&root, "sys/class/block/sda/serial", "S1\n");
    machine_disk(root.fd, disk);
    assert_int_equal(strspn(disk, "0123456789abcdef"), 16);
    assert_int_equal(test_root_remove(&root), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_disk_is_known_by_its_hardware),
            cmocka_unit_test(the_disk_of_a_mapped_btrfs_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
