/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/stage-metadata.h"

#include "base/log.h"
#include "volume/ext2-metadata.h"
#include "volume/mountinfo.h"

#include <fcntl.h>
#include <string.h>

int stage_metadata_observe(StageMetadata *m, const VolumeSnapshots *s, const Volume *v)
{
    int r = volume_snapshots_added(s, v, &m->ranges);

    if (r >= 0)
        m->source = METADATA_SOURCE_CACHESTAT;
    return r == -ENOMEM ? r : 0;
}

int stage_metadata_add(StageMetadata *m, const Volume *v, const char *path, uint64_t inode)
{
    int r = 0;

    if (m->source == METADATA_SOURCE_CACHESTAT || strncmp(v->fstype, "ext", 3) != 0 ||
        !path_is_below(path, v->target))
        return 0;
    if (!m->deriver) {
        m->volume_fd = open(v->target, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = metadata_deriver_new(v, m->volume_fd, &m->deriver);
    }
    path += strcmp(v->target, "/") == 0 ? 0 : strlen(v->target);
    path += strspn(path, "/");
    return r < 0 ? r : metadata_deriver_note(m->deriver, *path ? path : ".", inode, 1);
}

/* Drops ranges that cannot be metadata of the stage. */
static int filter(StageMetadata *m, const Volume *v)
{
    Ext2Metadata *fs = NULL;
    RangeSet kept = {0};
    int r = ext2_metadata_open_volume(v, &fs);

    if (r >= 0)
        r = ext2_metadata_filter(fs, &m->ranges, &kept);
    ext2_metadata_free(fs);
    if (r < 0)
        return r;
    range_set_done(&m->ranges);
    m->ranges = kept;
    return 0;
}

static int derive(StageMetadata *m)
{
    _cleanup_free_ PredictedRange *ranges = NULL;
    size_t n = 0;
    int r = m->deriver ? metadata_deriver_finish(m->deriver, &ranges, &n) : 0;

    for (size_t i = 0; r >= 0 && i < n; i++)
        r = range_set_insert(&m->ranges, ranges[i].offset, ranges[i].length);
    if (r >= 0)
        m->source = METADATA_SOURCE_DERIVED;
    return r;
}

int stage_metadata_finish(StageMetadata *m, const Volume *v)
{
    int r;

    if (strncmp(v->fstype, "ext", 3) != 0)
        return 0;
    r = m->source == METADATA_SOURCE_CACHESTAT ? filter(m, v) : derive(m);
    if (r < 0)
        log_debug_errno(r, "libext2fs cannot read %s, ignoring: %m", v->device);
    return r == -ENOMEM ? r : 0;
}

void stage_metadata_done(StageMetadata *m)
{
    range_set_done(&m->ranges);
    if (!m->deriver)
        return;
    m->deriver = metadata_deriver_free(m->deriver);
    closep(&m->volume_fd);
}
