/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests which facts of a volume are trusted, and from which volumes nothing is read:
 * volume/volume.h, volume/presence.h, volume/ext2-metadata.h. */

#include "volume/btrfs-trees.h"
#include "volume/ext2-metadata.h"
#include "volume/fstab.h"
#include "volume/mount-table.h"
#include "volume/presence.h"
#include "volume/volume.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "util/root-util.h"

static Volume made(const char *uuid, uint64_t mount_dev, bool removable)
{
    return (Volume){
            .uuid = strdup(uuid),
            .uuid_bytes = {uuid[0] ? 1 : 0},
            .mount_dev = mount_dev,
            .removable = removable,
            .mountpoint = (char *)"/x",
    };
}

/* Checks which volumes keep their UUID: "+" in `expected` stands for a volume that keeps it, "-"
 * for one that loses it. */
static void expect_kept(Volume *v, size_t n, const char *expected)
{
    VolumeTable t = {.volumes = v, .n = n};

    volume_table_drop_copies(&t);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(expected[i], v[i].uuid[0] ? '+' : '-');
        assert_int_equal(v[i].uuid_bytes[0], v[i].uuid[0] ? 1 : 0);
        free(v[i].uuid);
    }
}

static void copies_of_a_uuid_lose_it(void **state)
{
    Volume first[] = {made("a", 1, false), made("b", 2, false), made("a", 3, false)};
    Volume stick[] = {made("a", 1, true), made("a", 2, false), made("a", 3, true)};
    Volume subvolumes[] = {made("a", 1, false), made("a", 1, false), made("a", 2, false)};
    Volume card[] = {made("a", 1, true), made("a", 2, false), made("b", 3, true),
                     made("b", 4, true)};
    Volume unknown[] = {made("", 1, false), made("", 2, false)};

    /* The system runs from an SD card, of which the internal disk has a copy. */
    card[0].of_system = card[3].of_system = true;
    expect_kept(card, 4, "+--+");
    expect_kept(first, 3, "++-");
    expect_kept(stick, 3, "-+-");
    expect_kept(subvolumes, 3, "++-");
    expect_kept(unknown, 2, "--");
}

static void only_what_the_boot_mounts_counts(void **state)
{
    static const char text[] = "# /commented\n"
                               "UUID=1 / ext4 defaults 0 1\n"
                               "\n"
                               "LABEL=d\t/data/ ext4 rw,nofail,x-systemd.device-timeout=5s\n"
                               "/dev/sdb1 /media/with\\040blank ext4\n"
                               "/dev/sdc1 /mnt/a ext4 rw,noauto\n"
                               "/dev/sdc1 /mnt/b ext4 user,rw\n"
                               "/dev/sdc1 /mnt/c ext4 users\n"
                               "/dev/sdc1 /mnt/d ext4 owner,rw\n"
                               "/dev/sdc1 /mnt/e ext4 group\n"
                               "/dev/sdc1 /mnt/f ext4 user_xattr,usrquota,grpquota,auto\n"
                               "/dev/sdd1 /end ext4";
    static const char *const mounted[] = {"/", "/data", "/media/with blank", "/mnt/f", "/end"};
    static const char *const others[] = {"/commented", "/mnt/a", "/mnt/b", "/mnt/c", "/mnt/d",
                                         "/mnt/e",     "/mnt",   "/dat",   "ext4",   ""};

    for (size_t i = 0; i < ELEMENTSOF(mounted); i++)
        assert_true(fstab_mounts(text, mounted[i]));
    for (size_t i = 0; i < ELEMENTSOF(others); i++)
        assert_false(fstab_mounts(text, others[i]));
    assert_false(fstab_mounts("", "/"));
}

/* The device does not exist, so opening it would fail with another error than -EPERM. -EPERM
 * therefore shows that the device was refused before it was opened. */
static void metadata_of_removable_disks_is_not_parsed(void **state)
{
    Volume v = {.block_dev = UINT64_C(0xfff00), .mountpoint = (char *)"/media/stick"};
    Ext2Metadata *m = NULL;
    BtrfsTrees *t = NULL;

    assert_int_not_equal(ext2_metadata_open_volume(&v, &m), -EPERM);
    assert_int_not_equal(btrfs_trees_open_volume(&v, &t), -EPERM);
    v.removable = true;
    assert_int_equal(ext2_metadata_open_volume(&v, &m), -EPERM);
    assert_int_equal(btrfs_trees_open_volume(&v, &t), -EPERM);
    v.of_system = true; /* this machine runs from the disk */
    assert_int_not_equal(ext2_metadata_open_volume(&v, &m), -EPERM);
    assert_int_not_equal(btrfs_trees_open_volume(&v, &t), -EPERM);
    assert_null(m);
    assert_null(t);
}

static void make_file(const char *root, const char *name)
{
    char path[256];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static void make_directory(const char *root, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", root, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

/* A symlink on the way is not followed, because it may lead to an automount. */
static void presence_follows_no_symlink(void **state)
{
    char root[] = "/tmp/test-volumes-XXXXXX", path[256], command[128];
    struct stat st;
    Volume v = {.target = root, .mountpoint = (char *)"/"};
    VolumeTable t = {.volumes = &v, .n = 1};
    size_t above;

    assert_non_null(mkdtemp(root));
    assert_int_equal(stat(root, &st), 0);
    v.st_dev = st.st_dev;
    make_directory(root, "d");
    make_file(root, "d/f");
    snprintf(path, sizeof(path), "%s/link", root);
    assert_int_equal(symlink("d", path), 0);
    snprintf(path, sizeof(path), "%s/end", root);
    assert_int_equal(symlink("none", path), 0);

    assert_int_equal(presence_find(&t, root, "/d/f", &above), PRESENCE_THERE);
    assert_int_equal(presence_find(&t, root, "/end", &above), PRESENCE_THERE);
    assert_int_equal(presence_find(&t, root, "/link/f", &above), PRESENCE_UNKNOWN);
    assert_int_equal(presence_find(&t, root, "/link/gone", &above), PRESENCE_UNKNOWN);
    assert_int_equal(presence_find(&t, root, "/d/gone/x", &above), PRESENCE_GONE);
    assert_int_equal(above, 2);
    snprintf(command, sizeof(command), "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

/* A user can mount a thousand FUSE filesystems with long names. */
static void the_mounts_of_users_have_room(void **state)
{
    enum { MOUNTS = 1000, NAME = 4095 };
    _cleanup_(mount_table_done) MountTable t = {0};
    TestRoot root;
    char *text = NULL, name[4 * NAME + 1];
    size_t size;
    FILE *f = open_memstream(&text, &size);

    assert_non_null(f);
    for (size_t i = 0; i < NAME; i++)
        memcpy(name + 4 * i, "\\040", 5);
    fprintf(f, "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n");
    for (int i = 0; i < MOUNTS; i++)
        fprintf(f, "%d 1 0:%d / /%s rw - fuse.%s %s rw,user_id=1000\n", i + 2, i + 2, name, name,
                name);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(test_root_make(&root), 0);
    test_root_put(&root, "proc/self/mountinfo", text);
    free(text);
    assert_int_equal(mount_table_read(root.fd, &t), 0);
    assert_int_equal(t.n, MOUNTS + 1);
    assert_int_equal(strlen(t.mounts[MOUNTS].source), NAME);
    assert_int_equal(test_root_remove(&root), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(copies_of_a_uuid_lose_it),
            cmocka_unit_test(only_what_the_boot_mounts_counts),
            cmocka_unit_test(metadata_of_removable_disks_is_not_parsed),
            cmocka_unit_test(presence_follows_no_symlink),
            cmocka_unit_test(the_mounts_of_users_have_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
