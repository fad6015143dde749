/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/stage-metadata.h"

#include "base/log.h"
#include "system/disk-call.h"
#include "volume/ext2-metadata.h"
#include "volume/mountinfo.h"

#include <fcntl.h>
#include <string.h>

/* libext2fs reads a block bitmap, or a block of the inode table, for each group of blocks. */
#define LIBEXT2FS_USEC (3 * USEC_PER_SEC)

int stage_metadata_observe(StageMetadata *m, const VolumeSnapshots *s, const Volume *v)
{
    int r;

    if (volume_is_foreign(v))
        return 0;
    r = volume_snapshots_added(s, v, &m->ranges);
    if (r >= 0)
        m->source = METADATA_SOURCE_CACHESTAT;
    return r == -ENOMEM ? r : 0;
}

/* --- in the thread of the disk ---------------------------------------------------------------- */

/* One step. The job owns the metadata while the step runs. */
typedef struct MetadataJob {
    DiskJob job;
    StageMetadata m;
    char *path; /* below the mount point */
    uint64_t inode;
    int r;
} MetadataJob;

static void job_free(DiskJob *job)
{
    MetadataJob *x = (MetadataJob *)job;

    stage_metadata_done(&x->m);
    free(x->path);
    free(x);
}

static void run_note(DiskJob *job)
{
    MetadataJob *x = (MetadataJob *)job;
    StageMetadata *m = &x->m;

    x->r = 0;
    if (!m->deriver) {
        m->volume_fd = open(m->volume->target, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        x->r = metadata_deriver_new(m->volume, m->volume_fd, &m->deriver);
    }
    if (x->r >= 0)
        x->r = metadata_deriver_note(m->deriver, &(NotedFile){x->path, x->inode, false, 1});
}

/* Drops ranges that cannot be metadata of the stage. */
static int filter(StageMetadata *m)
{
    Ext2Metadata *fs = NULL;
    RangeSet kept = {0};
    int r = ext2_metadata_open_volume(m->volume, &fs);

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
    _cleanup_free_ DerivedMetadata *derived = NULL;
    size_t n = 0;
    int r = m->deriver ? metadata_deriver_finish(m->deriver, &derived, &n) : 0;

    for (size_t i = 0; r >= 0 && i < n; i++)
        r = range_set_insert(&m->ranges, derived[i].range.offset, derived[i].range.length);
    if (r >= 0)
        m->source = METADATA_SOURCE_DERIVED;
    return r;
}

static void run_finish(DiskJob *job)
{
    MetadataJob *x = (MetadataJob *)job;

    x->r = x->m.source == METADATA_SOURCE_CACHESTAT ? filter(&x->m) : derive(&x->m);
}

/* --- in the recorder -------------------------------------------------------------------------- */

/* Copies what a step needs of the volume, which the caller may free while a step hangs. */
static Volume *copy_volume(const Volume *v)
{
    Volume *copy = calloc(1, sizeof(*copy));

    if (!copy)
        return NULL;
    copy->target = strdup(v->target);
    copy->fstype = strdup(v->fstype);
    copy->block_dev = v->block_dev;
    copy->removable = v->removable;
    copy->of_system = v->of_system;
    if (!copy->target || !copy->fstype) {
        free(copy->target);
        free(copy->fstype);
        free(copy);
        return NULL;
    }
    return copy;
}

/* Makes one step. Returns what the step returned, 0 if the disk does not answer, or -ENOMEM. */
static int make_step(StageMetadata *m, const Volume *v, void (*run)(DiskJob *job), const char *path,
                     uint64_t inode)
{
    MetadataJob *x = calloc(1, sizeof(*x));
    int r;

    if (!x)
        return -ENOMEM;
    x->job = (DiskJob){run, job_free, run == run_finish ? LIBEXT2FS_USEC : 0};
    x->path = strdup(path);
    x->inode = inode;
    if (!m->volume)
        m->volume = copy_volume(v);
    if (!x->path || !m->volume) {
        job_free(&x->job);
        return -ENOMEM;
    }
    x->m = *m;
    *m = (StageMetadata){.lost = true};
    r = disk_call(volume_call_dev(v), &x->job);
    if (r < 0)
        return 0;
    *m = x->m;
    x->m = (StageMetadata){0};
    r = x->r;
    job_free(&x->job);
    return r;
}

int stage_metadata_add(StageMetadata *m, const Volume *v, const char *path, uint64_t inode)
{
    if (m->lost || m->source == METADATA_SOURCE_CACHESTAT || volume_is_foreign(v) ||
        !volume_is_ext(v) || !path_is_below(path, v->target))
        return 0;
    path += strcmp(v->target, "/") == 0 ? 0 : strlen(v->target);
    path += strspn(path, "/");
    return make_step(m, v, run_note, *path ? path : ".", inode);
}

int stage_metadata_finish(StageMetadata *m, const Volume *v)
{
    int r;

    if (m->lost || volume_is_foreign(v) || !volume_is_ext(v))
        return 0;
    r = make_step(m, v, run_finish, "", 0);
    if (r < 0)
        log_debug_errno(r, "libext2fs cannot read %s, ignoring: %m", v->device);
    return r == -ENOMEM ? r : 0;
}

void stage_metadata_done(StageMetadata *m)
{
    range_set_done(&m->ranges);
    if (m->volume) {
        free(m->volume->target);
        free(m->volume->fstype);
    }
    free(m->volume);
    m->volume = NULL;
    if (!m->deriver)
        return;
    m->deriver = metadata_deriver_free(m->deriver);
    closep(&m->volume_fd);
}
