/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "observe/volume-snapshots.h"

#include "base/clock.h"
#include "device/block-device.h"
#include "system/disk-call.h"

#include <string.h>

static void snapshot_done(VolumeSnapshot *x)
{
    range_set_done(&x->resident_before);
    range_set_done(&x->seen_before);
    range_set_done(&x->resident_since);
}

static void forget_all(VolumeSnapshots *s)
{
    for (size_t i = 0; i < s->n; i++)
        snapshot_done(&s->items[i]);
    s->n = 0;
}

void volume_snapshots_done(VolumeSnapshots *s)
{
    forget_all(s);
    free(s->items);
    *s = (VolumeSnapshots){0};
}

static VolumeSnapshot *find(const VolumeSnapshots *s, uint64_t st_dev)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->items[i].st_dev == st_dev)
            return &s->items[i];
    return NULL;
}

static VolumeSnapshot *add(VolumeSnapshots *s, uint64_t st_dev)
{
    if (grow_array(&s->items, &s->allocated, s->n + 1, sizeof(VolumeSnapshot)) < 0)
        return NULL;
    s->items[s->n] = (VolumeSnapshot){.st_dev = st_dev};
    return &s->items[s->n++];
}

/* Searches the page cache of a block device. The open of a removable device asks the device whether
 * its medium was changed. */
typedef struct SnapshotJob {
    DiskJob job;
    uint64_t block_dev, size_bytes;
    CachestatWhat what;
    RangeSet ranges;
    int r;
} SnapshotJob;

static void job_free(DiskJob *job)
{
    SnapshotJob *x = (SnapshotJob *)job;

    range_set_done(&x->ranges);
    free(x);
}

static void job_run(DiskJob *job)
{
    SnapshotJob *x = (SnapshotJob *)job;
    usec_t deadline = clock_now(CLOCK_MONOTONIC) + VOLUME_SNAPSHOT_USEC;
    _cleanup_close_ int fd = block_device_open(x->block_dev);

    x->r = fd < 0 ? fd : cachestat_ranges(fd, x->what, x->size_bytes, deadline, &x->ranges);
    if (x->r > 0)
        x->r = -ETIME;
}

static int volume_cachestat(const VolumeSnapshots *s, const Volume *v, CachestatWhat what,
                            RangeSet *ret)
{
    SnapshotJob *x;
    int r;

    if (!volume_is_ext(v))
        return -EOPNOTSUPP;
    if (s->no_cachestat)
        return -ENOSYS;
    x = calloc(1, sizeof(*x));
    if (!x)
        return -ENOMEM;
    x->job = (DiskJob){job_run, job_free};
    x->block_dev = v->block_dev;
    x->size_bytes = v->size_bytes;
    x->what = what;
    r = disk_call(volume_call_dev(v), &x->job);
    if (r < 0)
        return r;
    r = x->r;
    if (r >= 0) {
        *ret = x->ranges;
        x->ranges = (RangeSet){0};
    }
    job_free(&x->job);
    return r;
}

int volume_snapshots_begin(VolumeSnapshots *s, const VolumeTable *t)
{
    forget_all(s);
    for (size_t i = 0; i < t->n; i++) {
        VolumeSnapshot *x = add(s, t->volumes[i].st_dev);

        if (!x)
            return -ENOMEM;
        x->unknown =
                volume_cachestat(s, &t->volumes[i], CACHESTAT_RESIDENT, &x->resident_before) < 0 ||
                volume_cachestat(s, &t->volumes[i], CACHESTAT_SEEN, &x->seen_before) < 0;
    }
    return 0;
}

int volume_snapshots_sample(VolumeSnapshots *s, const VolumeTable *t)
{
    for (size_t i = 0; i < t->n; i++) {
        VolumeSnapshot *x = find(s, t->volumes[i].st_dev);
        _cleanup_range_set_ RangeSet now = {0};
        int r;

        if ((x && x->unknown) || volume_cachestat(s, &t->volumes[i], CACHESTAT_RESIDENT, &now) < 0)
            continue;
        x = x ? x : add(s, t->volumes[i].st_dev);
        r = x ? range_set_unite(&x->resident_since, &now) : -ENOMEM;
        if (r < 0)
            return r;
    }
    return 0;
}

void volume_snapshots_keep(VolumeSnapshots *s, const VolumeTable *t)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        if (volume_by_dev(t, s->items[i].st_dev))
            s->items[n++] = s->items[i];
        else
            snapshot_done(&s->items[i]);
    s->n = n;
}

int volume_snapshots_added(const VolumeSnapshots *s, const Volume *v, RangeSet *ret)
{
    static const VolumeSnapshot nothing;
    const VolumeSnapshot *x = find(s, v->st_dev);
    _cleanup_range_set_ RangeSet now = {0}, since = {0}, resident = {0};
    _cleanup_range_set_ RangeSet seen = {0}, reclaimed = {0};
    int r;

    x = x ? x : &nothing;
    if (x->unknown)
        return -ENODATA;
    r = volume_cachestat(s, v, CACHESTAT_RESIDENT, &now);
    if (r >= 0)
        r = volume_cachestat(s, v, CACHESTAT_SEEN, &seen);
    if (r >= 0)
        r = range_set_union(&now, &x->resident_since, &since);
    if (r >= 0)
        r = range_set_subtract(&since, &x->resident_before, &resident);
    if (r >= 0)
        r = range_set_subtract(&seen, &x->seen_before, &reclaimed);
    return r < 0 ? r : range_set_union(&resident, &reclaimed, ret);
}
