/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests which filesystems are watched if their encryption is stronger than that of the state
 * directory, and at which of its mounts a filesystem is found. The tables of filesystems and
 * fanotify are fakes: the linker wraps the functions. */

#include "observe/watched-volumes.h"

#include "volume/mount-table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/sysmacros.h>
/* needs the three headers above */
#include <cmocka.h>

#define VOLUMES 4 /* not encrypted, LUKS, another LUKS, a home of systemd-homed */

static const Encryption levels[VOLUMES] = {
        {.level = ENCRYPTION_NONE},
        {.level = ENCRYPTION_DISK, .device = "CRYPT-LUKS2-one"},
        {.level = ENCRYPTION_DISK, .device = "CRYPT-LUKS2-two"},
        {.level = ENCRYPTION_USER, .device = "CRYPT-LUKS2-home"},
};

#define MOUNTS                                  \
    "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"     \
    "21 20 8:2 / /two rw - ext4 /dev/sda2 rw\n" \
    "22 20 8:3 / /three rw - ext4 /dev/sda3 rw\n"
#define MOUNT_FOUR "23 20 8:4 / /mnt/four rw - ext4 /dev/sda4 rw\n"
#define BIND_FOUR  "24 20 8:4 / /b rw - ext4 /dev/sda4 rw\n"
#define PART_FOUR  "25 20 8:4 /part /p rw - ext4 /dev/sda4 rw\n"

static struct {
    Encryption store;
    const char *mountinfo;
    char watched[VOLUMES + 1];
    char targets[VOLUMES][16];
    uint64_t lost; /* st_dev of the filesystem that has lost its mark */
} fake = {.mountinfo = MOUNTS MOUNT_FOUR};

int __wrap_mount_table_read(int root_fd, MountTable *ret);
int __wrap_volume_table_read(int sys_fd, const char *prefix, VolumeTable *ret);
int __wrap_volume_read_encryption_of_place(const VolumeTable *t, const char *path, Encryption *ret);
int __wrap_fanotify_watch(Fanotify *f, const Volume *v, uint32_t number);
int __wrap_fanotify_set_target(Fanotify *f, uint64_t st_dev, const char *target);
void __wrap_fanotify_unwatch(Fanotify *f, uint64_t st_dev);
bool __wrap_fanotify_lost_mark(const Fanotify *f, uint64_t st_dev);

int __wrap_mount_table_read(int root_fd, MountTable *ret)
{
    return mount_table_parse(fake.mountinfo, ret, NULL);
}

int __wrap_volume_table_read(int sys_fd, const char *prefix, VolumeTable *ret)
{
    _cleanup_mount_table_ MountTable t = {0};
    _cleanup_free_ size_t *chosen = NULL;
    size_t n;

    assert_int_equal(mount_table_parse(fake.mountinfo, &t, NULL), 0);
    assert_int_equal(mount_table_select(&t, prefix, &chosen, &n), 0);
    assert_int_equal(n, VOLUMES);
    *ret = (VolumeTable){.volumes = calloc(VOLUMES, sizeof(Volume)), .n = VOLUMES};
    assert_non_null(ret->volumes);
    for (size_t i = 0; i < VOLUMES; i++) {
        const Mount *m = &t.mounts[chosen[i]];

        ret->volumes[i].st_dev = i + 1;
        ret->volumes[i].mount_dev = makedev(m->major, m->minor);
        ret->volumes[i].target = strdup(m->target);
        ret->volumes[i].mountpoint = strdup(m->target);
        ret->volumes[i].encryption = levels[i];
    }
    return 0;
}

int __wrap_volume_read_encryption_of_place(const VolumeTable *t, const char *path, Encryption *ret)
{
    *ret = fake.store;
    return 0;
}

int __wrap_fanotify_watch(Fanotify *f, const Volume *v, uint32_t number)
{
    fake.watched[v->st_dev - 1] = '+';
    return __wrap_fanotify_set_target(f, v->st_dev, v->target);
}

int __wrap_fanotify_set_target(Fanotify *f, uint64_t st_dev, const char *target)
{
    snprintf(fake.targets[st_dev - 1], sizeof(fake.targets[0]), "%s", target);
    return 0;
}

void __wrap_fanotify_unwatch(Fanotify *f, uint64_t st_dev)
{
    fake.watched[st_dev - 1] = '-';
}

bool __wrap_fanotify_lost_mark(const Fanotify *f, uint64_t st_dev)
{
    return st_dev == fake.lost;
}

static void expect(WatchedVolumes *w, Encryption store, const char *expected)
{
    fake.store = store;
    memset(fake.watched, '-', VOLUMES);
    for (size_t i = 0; i < w->n; i++)
        if (w->items[i].st_dev != 0)
            fake.watched[w->items[i].st_dev - 1] = '+';
    assert_int_equal(watched_volumes_update(w, NULL, "/"), 0);
    assert_string_equal(fake.watched, expected);
}

static void only_where_the_store_protects_names_as_well(void **state)
{
    WatchedVolumes w = {.store = "/var/lib/headstart"};

    expect(&w, levels[0], "+---");
    expect(&w, levels[1], "+++-"); /* both keys are in memory while the machine runs */
    expect(&w, levels[3], "++++");
    expect(&w, levels[0], "+---"); /* after a change of the store's encryption, the encrypted
                                      filesystems are no longer watched */
    watched_volumes_done(&w);
}

static void a_recording_that_is_stored_elsewhere_watches_everything(void **state)
{
    WatchedVolumes w = {0};

    expect(&w, levels[0], "++++");
    watched_volumes_done(&w);
}

static void what_has_lost_its_mark_is_marked_again(void **state)
{
    WatchedVolumes w = {0};

    expect(&w, levels[0], "++++");
    memset(fake.watched, '.', VOLUMES);
    fake.lost = 2;
    assert_int_equal(watched_volumes_update(&w, NULL, "/"), 0);
    assert_string_equal(fake.watched, ".+..");
    fake.lost = 0;
    watched_volumes_done(&w);
}

/* Checks where the fourth filesystem is found when these mounts are there. */
static void expect_four(WatchedVolumes *w, const char *mountinfo, bool changed, const char *target)
{
    fake.mountinfo = mountinfo;
    assert_int_equal(watched_volumes_changed(w, NULL, "/"), changed);
    assert_int_equal(watched_volumes_update(w, NULL, "/"), 0);
    assert_string_equal(fake.targets[3], target);
    assert_string_equal(w->table.volumes[3].target, target);
    assert_string_equal(w->table.volumes[3].mountpoint, target);
    assert_int_equal(watched_volumes_changed(w, NULL, "/"), 0);
}

static void the_target_is_a_mount_that_remains(void **state)
{
    WatchedVolumes w = {0};

    expect_four(&w, MOUNTS MOUNT_FOUR, true, "/mnt/four");
    memset(fake.watched, '.', VOLUMES);
    expect_four(&w, MOUNTS MOUNT_FOUR BIND_FOUR, false, "/mnt/four"); /* no path changes */
    expect_four(&w, MOUNTS BIND_FOUR, true, "/b");
    expect_four(&w, MOUNTS PART_FOUR, true, "/p");
    expect_four(&w, MOUNTS MOUNT_FOUR PART_FOUR, true, "/mnt/four"); /* it shows more */
    /* Another filesystem hides the mount. */
    expect_four(&w, MOUNTS MOUNT_FOUR BIND_FOUR "30 23 0:50 / /mnt/four rw - tmpfs none rw\n", true,
                "/b");
    assert_string_equal(fake.watched, "....");
    watched_volumes_done(&w);
    fake.mountinfo = MOUNTS MOUNT_FOUR;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(only_where_the_store_protects_names_as_well),
            cmocka_unit_test(a_recording_that_is_stored_elsewhere_watches_everything),
            cmocka_unit_test(what_has_lost_its_mark_is_marked_again),
            cmocka_unit_test(the_target_is_a_mount_that_remains),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
