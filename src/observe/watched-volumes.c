/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "observe/watched-volumes.h"

#include "base/log.h"
#include "volume/mount-table.h"

#include <fcntl.h>

void watched_volumes_done(WatchedVolumes *w)
{
    volume_table_done(&w->table);
    free(w->items);
    *w = (WatchedVolumes){0};
}

bool watched_volumes_have(const WatchedVolumes *w, uint64_t st_dev)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->items[i].st_dev == st_dev)
            return true;
    return false;
}

int watched_volumes_changed(const WatchedVolumes *w, const Fanotify *f, const char *root)
{
    _cleanup_mount_table_ MountTable t = {0};
    _cleanup_free_ size_t *chosen = NULL;
    size_t n, known = 0;
    int r;

    r = mount_table_read(AT_FDCWD, &t);
    if (r >= 0)
        r = mount_table_select(&t, root, &chosen, &n);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++)
        known += volume_by_mount(&w->table, &t.mounts[chosen[i]]) != NULL;
    if (known != n || known != w->table.n)
        return 1;
    for (size_t i = 0; i < w->n; i++)
        if (fanotify_lost_mark(f, w->items[i].st_dev))
            return 1;
    return 0;
}

bool watched_volumes_may_name(const WatchedVolumes *w, const Volume *v, int fd)
{
    const Encryption nothing = {0};
    Encryption e = encryption_read_file(fd, v ? &v->encryption : &nothing);

    return !w->store || encryption_allows(&w->store_encryption, &e);
}

static bool may_watch(const WatchedVolumes *w, const Volume *v)
{
    return !w->store || encryption_allows(&w->store_encryption, &v->encryption);
}

/* Drops also the filesystems that have lost their marks, so that they are marked again. */
static void drop_unmounted(WatchedVolumes *w, Fanotify *f, const VolumeTable *mounted)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++) {
        const Volume *v = volume_by_dev(mounted, w->items[i].st_dev);

        if (v && may_watch(w, v) && !fanotify_lost_mark(f, v->st_dev))
            w->items[n++] = w->items[i];
        else
            fanotify_unwatch(f, w->items[i].st_dev);
    }
    w->n = n;
}

static void log_if_new(const WatchedVolumes *w, const Volume *v)
{
    if (!volume_by_dev(&w->table, v->st_dev))
        log_notice("%s is not recorded: its encryption protects it better than %s is protected.",
                   v->target, w->store);
}

int watched_volumes_update(WatchedVolumes *w, Fanotify *f, const char *root)
{
    _cleanup_volume_table_ VolumeTable t = {0};
    int r;

    r = volume_table_read(AT_FDCWD, root, &t);
    if (r < 0)
        return r;
    if (w->store) {
        r = volume_read_encryption_of_place(&t, w->store, &w->store_encryption);
        if (r < 0)
            return r;
    }
    drop_unmounted(w, f, &t);
    for (size_t i = 0; i < t.n; i++) {
        if (!may_watch(w, &t.volumes[i])) {
            log_if_new(w, &t.volumes[i]);
            continue;
        }
        if (watched_volumes_have(w, t.volumes[i].st_dev))
            continue;
        r = grow_array(&w->items, &w->allocated, w->n + 1, sizeof(WatchedVolume));
        if (r >= 0)
            r = fanotify_watch(f, &t.volumes[i], w->next_number);
        if (r == -ENOMEM || (r == -EPERM && w->next_number == 0))
            return r;
        if (r == -ETIMEDOUT && !volume_by_dev(&w->table, t.volumes[i].st_dev))
            log_notice("%s is not recorded: its disk does not answer.", t.volumes[i].target);
        if (r < 0) {
            log_debug_errno(r, "Cannot watch %s, ignoring: %m", t.volumes[i].target);
            continue;
        }
        w->next_number++;
        w->items[w->n++] = (WatchedVolume){.st_dev = t.volumes[i].st_dev};
    }
    volume_table_done(&w->table);
    w->table = t;
    t = (VolumeTable){0};
    return 0;
}
