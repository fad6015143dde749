/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/stage-metadata.h"

#include "base/log.h"
#include "volume/ext2-metadata.h"
#include "volume/mountinfo.h"

#include <fcntl.h>
#include <string.h>

static const WatchedVolume *watched_of(const Recorder *r, const Volume *v)
{
    for (size_t i = 0; i < r->n_watched; i++)
        if (r->watched[i].st_dev == v->st_dev)
            return &r->watched[i];
    return NULL;
}

int stage_metadata_snapshot(StageMetadata *e, Recorder *r, const Volume *v)
{
    const WatchedVolume *w = watched_of(r, v);
    _cleanup_range_set_ RangeSet now = {0}, since = {0}, resident = {0};
    _cleanup_range_set_ RangeSet seen = {0}, reclaimed = {0};
    int k;

    if (!w || !w->has_snapshot)
        return 0;
    k = recorder_snapshot(r, v, CACHESTAT_RESIDENT, &now);
    if (k >= 0)
        k = recorder_snapshot(r, v, CACHESTAT_SEEN, &seen);
    if (k < 0)
        return k == -ENOMEM ? k : 0;
    k = range_set_union(&now, &w->resident_since, &since);
    if (k >= 0)
        k = range_set_subtract(&since, &w->resident_before, &resident);
    if (k >= 0)
        k = range_set_subtract(&seen, &w->seen_before, &reclaimed);
    if (k >= 0)
        k = range_set_union(&resident, &reclaimed, &e->ranges);
    if (k >= 0)
        e->source = METADATA_SOURCE_CACHESTAT;
    return k;
}

/* Drops what cannot be metadata that the stage used. */
static int filter(StageMetadata *e, const Volume *v)
{
    Ext2Metadata *m = NULL;
    RangeSet kept = {0};
    int k = ext2_metadata_open_volume(v, &m);

    if (k >= 0)
        k = ext2_metadata_filter(m, &e->ranges, &kept);
    ext2_metadata_free(m);
    if (k < 0)
        return k;
    range_set_done(&e->ranges);
    e->ranges = kept;
    return 0;
}

static int derive(StageMetadata *e)
{
    _cleanup_free_ PredictedRange *ranges = NULL;
    size_t n = 0;
    int k = e->deriver ? metadata_deriver_finish(e->deriver, &ranges, &n) : 0;

    for (size_t i = 0; k >= 0 && i < n; i++)
        k = range_set_add(&e->ranges, ranges[i].offset, ranges[i].offset + ranges[i].length);
    if (k >= 0)
        e->source = METADATA_SOURCE_DERIVED;
    return k;
}

int stage_metadata_finish(StageMetadata *e, const Volume *v)
{
    int k;

    if (strncmp(v->fstype, "ext", 3) != 0)
        return 0;
    k = e->source == METADATA_SOURCE_CACHESTAT ? filter(e, v) : derive(e);
    if (k < 0)
        log_debug_errno(k, "libext2fs cannot read %s, ignoring: %m", v->device);
    return k == -ENOMEM ? k : 0;
}

/* For deriving metadata: a lookup reads the inodes of the file and of the directories above. */
int stage_metadata_note(StageMetadata *e, const Volume *v, const char *path, uint64_t inode)
{
    int k = 0;

    if (e->source == METADATA_SOURCE_CACHESTAT || strncmp(v->fstype, "ext", 3) != 0 ||
        !path_is_below(path, v->target))
        return 0;
    if (!e->deriver) {
        e->volume_fd = open(v->target, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        k = metadata_deriver_new(v, e->volume_fd, &e->deriver);
    }
    path += strcmp(v->target, "/") == 0 ? 0 : strlen(v->target);
    path += strspn(path, "/");
    return k < 0 ? k : metadata_deriver_note(e->deriver, *path ? path : ".", inode, 1);
}

void stage_metadata_done(StageMetadata *e)
{
    range_set_done(&e->ranges);
    if (!e->deriver)
        return;
    e->deriver = metadata_deriver_free(e->deriver);
    closep(&e->volume_fd);
}
