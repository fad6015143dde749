/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests which filesystems are watched if their encryption is stronger than that of the state
 * directory. The tables of filesystems and fanotify are fakes: the linker wraps the functions. */

#include "observe/watched-volumes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* needs the three headers above */
#include <cmocka.h>

#define VOLUMES 4 /* not encrypted, LUKS, another LUKS, a home of systemd-homed */

static const Encryption levels[VOLUMES] = {
        {.level = ENCRYPTION_NONE},
        {.level = ENCRYPTION_DISK, .device = "CRYPT-LUKS2-one"},
        {.level = ENCRYPTION_DISK, .device = "CRYPT-LUKS2-two"},
        {.level = ENCRYPTION_USER, .device = "CRYPT-LUKS2-home"},
};

static struct {
    Encryption store;
    char watched[VOLUMES + 1];
    uint64_t lost; /* st_dev of the filesystem that has lost its mark */
} fake;

int __wrap_volume_table_read(int sys_fd, const char *prefix, VolumeTable *ret);
int __wrap_volume_read_encryption_of_place(const VolumeTable *t, const char *path, Encryption *ret);
int __wrap_fanotify_watch(Fanotify *f, const Volume *v, uint32_t number);
void __wrap_fanotify_unwatch(Fanotify *f, uint64_t st_dev);
bool __wrap_fanotify_lost_mark(const Fanotify *f, uint64_t st_dev);

int __wrap_volume_table_read(int sys_fd, const char *prefix, VolumeTable *ret)
{
    *ret = (VolumeTable){.volumes = calloc(VOLUMES, sizeof(Volume)), .n = VOLUMES};
    assert_non_null(ret->volumes);
    for (size_t i = 0; i < VOLUMES; i++) {
        ret->volumes[i].st_dev = i + 1;
        ret->volumes[i].target = strdup("/somewhere");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(only_where_the_store_protects_names_as_well),
            cmocka_unit_test(a_recording_that_is_stored_elsewhere_watches_everything),
            cmocka_unit_test(what_has_lost_its_mark_is_marked_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
