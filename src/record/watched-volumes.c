/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/watched-volumes.h"

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

int watched_volumes_changed(const WatchedVolumes *w, const char *root)
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
    return known != n || known != w->table.n;
}

static void drop_unmounted(WatchedVolumes *w, Fanotify *f, const VolumeTable *mounted)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->items[i].st_dev != 0 && !volume_by_dev(mounted, w->items[i].st_dev)) {
            fanotify_unwatch(f, w->items[i].st_dev);
            w->items[i].st_dev = 0;
        }
}

int watched_volumes_update(WatchedVolumes *w, Fanotify *f, const char *root)
{
    _cleanup_volume_table_ VolumeTable t = {0};
    int r;

    r = volume_table_read(AT_FDCWD, root, &t);
    if (r < 0)
        return r;
    drop_unmounted(w, f, &t);
    for (size_t i = 0; i < t.n; i++) {
        if (watched_volumes_have(w, t.volumes[i].st_dev))
            continue;
        r = grow_array(&w->items, &w->allocated, w->n + 1, sizeof(WatchedVolume));
        if (r >= 0)
            r = fanotify_watch(f, &t.volumes[i], (uint32_t)w->n);
        if (r == -ENOMEM || (r == -EPERM && w->n == 0))
            return r;
        if (r < 0) {
            log_debug_errno(r, "Cannot watch %s, ignoring: %m", t.volumes[i].target);
            continue;
        }
        w->items[w->n++] = (WatchedVolume){.st_dev = t.volumes[i].st_dev};
    }
    volume_table_done(&w->table);
    w->table = t;
    t = (VolumeTable){0};
    return 0;
}
