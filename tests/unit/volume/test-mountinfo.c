/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests parsing /proc/self/mountinfo, and choosing the mount through which each filesystem is
 * reached. */

#include "volume/mountinfo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static MountTable parsed(const char *text, size_t bad)
{
    MountTable t = {0};
    size_t n = 99;

    assert_int_equal(mount_table_parse(text, &t, &n), 0);
    assert_int_equal(n, bad);
    return t;
}

/* Compares the selected targets below the prefix, joined by blanks, with `want`. */
static void assert_selected(const char *text, const char *prefix, const char *want)
{
    _cleanup_(mount_table_done) MountTable t = parsed(text, 0);
    char got[4096] = "";
    size_t *chosen = NULL, n = 0;

    assert_int_equal(mount_table_select(&t, prefix, &chosen, &n), 0);
    for (size_t i = 0; i < n; i++) {
        strcat(got, i > 0 ? " " : "");
        strcat(got, t.mounts[chosen[i]].target);
    }
    free(chosen);
    assert_string_equal(got, want);
}

static void lines_are_taken_apart(void **state)
{
    _cleanup_(mount_table_done) MountTable t = parsed(
            "22 1 8:2 / / rw,relatime shared:1 master:2 - ext4 /dev/sda2 rw,errors=remount-ro\n"
            "23 22 0:40 /@home /home\\040of\\011all ro - btrfs /dev/sdb1 "
            "rw,subvolid=257,subvol=/@home\n"
            "24 22 0:41 / /run rw - tmpfs tmpfs rw\n",
            0);

    assert_int_equal(t.n, 3);
    assert_int_equal(t.mounts[0].id, 22);
    assert_int_equal(t.mounts[0].parent, 1);
    assert_int_equal(t.mounts[0].major, 8);
    assert_int_equal(t.mounts[0].minor, 2);
    assert_string_equal(t.mounts[0].fstype, "ext4");
    assert_string_equal(t.mounts[0].source, "/dev/sda2");
    assert_false(t.mounts[0].readonly);
    assert_string_equal(t.mounts[1].target, "/home of\tall");
    assert_string_equal(t.mounts[1].root, "/@home");
    assert_true(t.mounts[1].readonly);
    assert_int_equal(mount_subvolume_id(&t.mounts[1]), 257);
    assert_int_equal(mount_subvolume_id(&t.mounts[0]), 0);
}

static void lines_that_do_not_parse_are_counted(void **state)
{
    static const char *const bad[] = {
            "22 1 8:2 / / rw - ext4",
            "x 1 8:2 / / rw - ext4 /dev/sda2 rw",
            "22 1 8-2 / / rw - ext4 /dev/sda2 rw",
            "22 1 8:2 / / rw ext4 /dev/sda2 rw",
            "22",
            "-",
            "22 1 99999999999999999999:2 / / rw - ext4 /dev/sda2 rw",
    };

    for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
        char text[500];

        snprintf(text, sizeof(text), "%s\n23 1 8:3 / /ok rw - ext4 /dev/sda3 rw\n", bad[i]);
        _cleanup_(mount_table_done) MountTable t = parsed(text, 1);
        assert_int_equal(t.n, 1);
        assert_string_equal(t.mounts[0].target, "/ok");
    }
    MountTable none = parsed("", 0);
    assert_int_equal(none.n, 0);
    mount_table_done(&none);
}

static void every_truncation_is_survived(void **state)
{
    static const char whole[] = "22 1 8:2 / / rw shared:1 - ext4 /dev/sda2 rw\n"
                                "23 22 0:40 /@ /x\\040y ro - btrfs /dev/sdb1 rw,subvolid=257\n";

    for (size_t l = 0; l < sizeof(whole); l++) {
        _cleanup_free_ char *text = strndup(whole, l);
        MountTable t = {0};
        size_t *chosen = NULL, n = 0;

        assert_int_equal(mount_table_parse(text, &t, NULL), 0);
        assert_int_equal(mount_table_select(&t, "/", &chosen, &n), 0);
        free(chosen);
        mount_table_done(&t);
    }
}

static void one_mount_a_filesystem_the_one_nearest_its_root(void **state)
{
    static const char text[] =
            "22 1 8:2 / / rw - ext4 /dev/sda2 rw\n"
            "23 22 8:2 /srv /export rw - ext4 /dev/sda2 rw\n" /* a bind mount of a part */
            "24 22 8:3 /a /bind rw - ext4 /dev/sda3 rw\n"
            "25 22 8:3 / /long/way rw - ext4 /dev/sda3 rw\n" /* shows the whole filesystem */
            "26 22 8:3 / /other rw - ext4 /dev/sda3 rw\n"    /* too, and its path is shorter */
            "27 22 0:30 / /proc rw - proc proc rw\n"
            "28 22 0:50 / /net rw - nfs4 host:/x rw\n"
            "29 22 0:51 / /fuse rw - fuseblk /dev/sdc1 rw\n";

    assert_selected(text, "/", "/ /other");
    assert_selected(text, "/long", "/long/way");
    assert_selected(text, "/nowhere", "");
}

static void what_is_covered_is_not_chosen(void **state)
{
    /* One mount over another at the same place. */
    assert_selected("22 1 8:2 / / rw - ext4 /dev/sda2 rw\n"
                    "23 22 8:3 / /mnt rw - ext4 /dev/sda3 rw\n"
                    "24 23 8:4 / /mnt rw - ext4 /dev/sda4 rw\n",
                    "/", "/ /mnt");
    assert_selected("22 1 8:2 / / rw - ext4 /dev/sda2 rw\n"
                    "23 22 8:3 / /mnt rw - ext4 /dev/sda3 rw\n"
                    "24 23 0:44 / /mnt rw - tmpfs none rw\n",
                    "/", "/");
    /* A later mount covers the directory above the mount point. */
    assert_selected("22 1 8:2 / / rw - ext4 /dev/sda2 rw\n"
                    "23 22 8:3 / /a/b rw - ext4 /dev/sda3 rw\n"
                    "24 22 0:44 / /a rw - tmpfs none rw\n",
                    "/", "/");
    /* A filesystem that is mounted on the covering one is visible. */
    assert_selected("22 1 8:2 / / rw - ext4 /dev/sda2 rw\n"
                    "23 22 0:44 / /a rw - tmpfs none rw\n"
                    "24 23 8:3 / /a/b rw - ext4 /dev/sda3 rw\n",
                    "/", "/ /a/b");
    /* The same filesystem mounted twice over itself is selected once. */
    assert_selected("22 1 8:2 / / rw - ext4 /dev/sda2 rw\n"
                    "23 22 8:3 / /mnt rw - ext4 /dev/sda3 rw\n"
                    "24 23 8:3 / /mnt rw - ext4 /dev/sda3 rw\n",
                    "/", "/ /mnt");
}

static void subvolumes_are_told_apart(void **state)
{
    static const char text[] =
            "22 1 0:30 /@ / rw - btrfs /dev/sda2 rw,subvolid=256,subvol=/@\n"
            "23 22 0:30 /@home /home rw - btrfs /dev/sda2 rw,subvolid=257,subvol=/@home\n"
            "24 22 0:30 /@home/u /bind rw - btrfs /dev/sda2 rw,subvolid=257,subvol=/@home\n";

    assert_selected(text, "/", "/ /home");
}

static void prefixes(void **state)
{
    assert_true(path_is_below("/a/b", "/a"));
    assert_true(path_is_below("/a", "/a"));
    assert_true(path_is_below("/a/b", "/a/"));
    assert_true(path_is_below("/a", "/"));
    assert_false(path_is_below("/ab", "/a"));
    assert_false(path_is_below("/", "/a"));
}

static void only_local_block_filesystems(void **state)
{
    static const char *const not_ours[] = {"fuseblk", "fuse",  "nfs",  "nfs4",  "cifs",
                                           "autofs",  "tmpfs", "proc", "",      "ext",
                                           "overlay", "9p",    "ceph", "ramfs", "xfss"};

    assert_true(fstype_is_local_block("ext4"));
    assert_true(fstype_is_local_block("btrfs"));
    assert_true(fstype_is_local_block("xfs"));
    for (size_t i = 0; i < ELEMENTSOF(not_ours); i++)
        assert_false(fstype_is_local_block(not_ours[i]));
}

/* An automount is covered by the filesystem that it has mounted. A lookup below an automount that
 * has not mounted yet, or below a network filesystem, may wait forever. */
static void local_paths(void **state)
{
    _cleanup_(mount_table_done) MountTable t =
            parsed("22 1 8:2 / / rw - ext4 /dev/sda2 rw\n"
                   "23 22 0:40 / /run rw - tmpfs tmpfs rw\n"
                   "24 22 0:41 / /home rw - autofs systemd-1 rw\n"
                   "25 24 8:3 / /home rw - ext4 /dev/sda3 rw\n"
                   "26 22 0:42 / /net rw - nfs4 server:/x rw\n"
                   "27 26 8:4 / /net/disk rw - ext4 /dev/sda4 rw\n"
                   "28 22 0:43 / /auto rw - autofs systemd-1 rw\n"
                   "29 22 8:5 / /ntfs rw - fuseblk /dev/sda5 rw\n",
                   0);
    _cleanup_(mount_table_done) MountTable none = {0};

    assert_true(mount_table_path_is_local(&t, "/usr/bin/a"));
    assert_true(mount_table_path_is_local(&t, "/run/a"));
    assert_true(mount_table_path_is_local(&t, "/home/user/a"));
    assert_true(mount_table_path_is_local(&t, "/network/a"));
    assert_false(mount_table_path_is_local(&t, "/net/a"));
    assert_false(mount_table_path_is_local(&t, "/net"));
    assert_false(mount_table_path_is_local(&t, "/net/disk/a"));
    assert_false(mount_table_path_is_local(&t, "/auto/a"));
    assert_false(mount_table_path_is_local(&t, "/ntfs/a"));
    assert_false(mount_table_path_is_local(&none, "/a"));
}

static const char *found(const MountTable *t, const char *path)
{
    const Mount *m = mount_table_find(t, path);

    return m ? m->source : "";
}

/* The last mount on the way counts, whatever is mounted below or beside it. */
static void paths_have_a_mount(void **state)
{
    _cleanup_(mount_table_done) MountTable t =
            parsed("22 1 8:2 / / rw - ext4 root rw\n"
                   "23 22 0:41 / /home rw - autofs automount rw\n"
                   "24 23 8:3 / /home rw - ext4 home rw\n"
                   "25 24 0:42 / /home/a/net rw - fuse.sshfs net rw\n"
                   "26 25 8:4 / /home/a/net/disk rw - ext4 disk rw\n"
                   "27 22 0:44 / /b/c rw - nfs4 covered rw\n"
                   "28 22 0:45 / /b rw - tmpfs cover rw\n",
                   0);
    _cleanup_(mount_table_done) MountTable none = {0};

    assert_string_equal(found(&t, "/etc/a"), "root");
    assert_string_equal(found(&t, "/home/a/image"), "home");
    assert_string_equal(found(&t, "/home/a/net/image"), "net");
    assert_string_equal(found(&t, "/home/a/network"), "home");
    assert_string_equal(found(&t, "/home/a/net/disk/image"), "disk");
    assert_string_equal(found(&t, "/b/c/image"), "cover");
    assert_string_equal(found(&t, "image"), "");
    assert_string_equal(found(&none, "/image"), "");
}

/* FUSE and eCryptfs may encrypt names. */
static void encrypted_paths(void **state)
{
    _cleanup_(mount_table_done) MountTable t =
            parsed("22 1 8:2 / / rw - ext4 /dev/sda2 rw\n"
                   "23 22 0:40 / /home/a rw - ecryptfs /home/.a rw\n"
                   "24 22 0:41 / /home/b/vault rw - fuse.gocryptfs gocryptfs rw\n"
                   "25 22 0:42 / /net rw - nfs4 server:/x rw\n"
                   "26 25 0:43 / /net/f rw - fuse none rw\n"
                   "27 22 8:5 / /ntfs rw - fuseblk /dev/sda5 rw\n",
                   0);
    _cleanup_(mount_table_done) MountTable none = {0};

    assert_true(mount_table_path_may_be_encrypted(&t, "/home/a/bin/x"));
    assert_true(mount_table_path_may_be_encrypted(&t, "/home/b/vault/x"));
    assert_false(mount_table_path_may_be_encrypted(&t, "/home/b/x"));
    assert_false(mount_table_path_may_be_encrypted(&t, "/net/x"));
    assert_true(mount_table_path_may_be_encrypted(&t, "/net/f/x"));
    assert_false(mount_table_path_may_be_encrypted(&t, "/ntfs/x"));
    assert_true(mount_table_path_may_be_encrypted(&none, "/x"));
}

/* A mount that another one covers is not looked at: an earlier one below, or the initrd's root. */
static void covered_mounts_are_not_on_the_way(void **state)
{
    _cleanup_(mount_table_done) MountTable t = parsed("1 1 0:2 / / rw - rootfs rootfs rw\n"
                                                      "22 1 8:2 / / rw - ext4 /dev/sda2 rw\n"
                                                      "23 22 0:41 / /a/b rw - nfs4 server:/x rw\n"
                                                      "24 22 0:44 / /a rw - tmpfs none rw\n"
                                                      "25 22 8:3 / /c rw - ext4 /dev/sda3 rw\n"
                                                      "26 25 0:45 / /c rw - nfs4 server:/x rw\n",
                                                      0);
    /* Parents that form a circle. */
    _cleanup_(mount_table_done) MountTable circle = parsed("22 1 8:2 / / rw - ext4 /dev/sda2 rw\n"
                                                           "22 22 8:3 / / rw - ext4 /dev/sda3 rw\n"
                                                           "22 22 8:4 / / rw - ext4 /dev/sda4 rw\n",
                                                           0);

    assert_int_equal(mount_table_find(&t, "/usr/bin/a")->id, 22);
    assert_int_equal(mount_table_find(&t, "/a/b/c")->id, 24);
    assert_int_equal(mount_table_find(&t, "/c")->id, 26);
    assert_null(mount_table_find(&circle, "/a"));
    assert_true(mount_table_path_is_local(&t, "/usr/bin/a"));
    assert_true(mount_table_path_is_local(&t, "/a/b/c"));
    assert_false(mount_table_path_is_local(&t, "/c/a"));
    assert_false(mount_table_path_is_local(&circle, "/a"));
}

/* A user makes a thousand mounts, each on the one before. The one in the middle is remote. */
static void a_chain_of_mounts_takes_no_time(void **state)
{
    enum { MOUNTS = 1000 };
    _cleanup_(mount_table_done) MountTable t = {0};
    char path[2 * MOUNTS + 1] = "", *text = NULL;
    clock_t start;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    assert_non_null(f);
    fprintf(f, "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n");
    for (unsigned i = 0; i < MOUNTS; i++) {
        strcat(path, "/m");
        fprintf(f, "%u %u 0:%u / %s rw - %s none rw\n", i + 2, i + 1, i + 2, path,
                i == MOUNTS / 2 ? "fuse.x" : "tmpfs");
    }
    assert_int_equal(fclose(f), 0);
    t = parsed(text, 0);
    free(text);
    start = clock();
    assert_false(mount_table_path_is_local(&t, path));
    path[MOUNTS] = 0; /* the mount before that of FUSE */
    assert_true(mount_table_path_is_local(&t, path));
    assert_true(clock() - start < CLOCKS_PER_SEC);
}

/* fusermount3 -o fsname= makes such a mount. */
static void a_source_may_be_empty(void **state)
{
    _cleanup_(mount_table_done) MountTable t =
            parsed("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
                   "2 1 0:40 / /m rw,nosuid - fuse  rw,user_id=1000\n",
                   0);

    assert_int_equal(t.n, 2);
    assert_string_equal(t.mounts[1].fstype, "fuse");
    assert_string_equal(t.mounts[1].source, "");
    assert_string_equal(t.mounts[1].super_options, "rw,user_id=1000");
    assert_false(mount_table_path_is_local(&t, "/m/x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(lines_are_taken_apart),
            cmocka_unit_test(a_source_may_be_empty),
            cmocka_unit_test(lines_that_do_not_parse_are_counted),
            cmocka_unit_test(every_truncation_is_survived),
            cmocka_unit_test(one_mount_a_filesystem_the_one_nearest_its_root),
            cmocka_unit_test(what_is_covered_is_not_chosen),
            cmocka_unit_test(subvolumes_are_told_apart),
            cmocka_unit_test(prefixes),
            cmocka_unit_test(local_paths),
            cmocka_unit_test(paths_have_a_mount),
            cmocka_unit_test(encrypted_paths),
            cmocka_unit_test(covered_mounts_are_not_on_the_way),
            cmocka_unit_test(a_chain_of_mounts_takes_no_time),
            cmocka_unit_test(only_local_block_filesystems),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
