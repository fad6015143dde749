/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/stage-metadata.h"

#include "base/log.h"
#include "volume/ext2-metadata.h"
#include "volume/mountinfo.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

typedef struct Parent {
    UT_hash_handle hh;
    uint64_t inode;
    bool oom;
} Parent;

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(elt) ((elt)->oom = true)

static int inode_set_add(InodeSet *s, uint64_t inode)
{
    int r = grow_array(&s->inodes, &s->allocated, s->n + 1, sizeof(uint64_t));

    if (r >= 0)
        s->inodes[s->n++] = inode;
    return r;
}

/* 1 if it is new as a parent, 0 if it was there, -ENOMEM. */
static int inode_set_add_parent(InodeSet *s, uint64_t inode)
{
    Parent *p;
    int r;

    HASH_FIND(hh, s->parents, &inode, sizeof(inode), p);
    if (p)
        return 0;
    p = calloc(1, sizeof(*p));
    if (!p)
        return -ENOMEM;
    p->inode = inode;
    HASH_ADD(hh, s->parents, inode, sizeof(p->inode), p);
    if (p->oom) {
        free(p);
        return -ENOMEM;
    }
    r = inode_set_add(s, inode);
    return r < 0 ? r : 1;
}

static int compare_inodes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void inode_set_sort(InodeSet *s)
{
    if (s->n > 0)
        qsort(s->inodes, s->n, sizeof(uint64_t), compare_inodes);
}

static void inode_set_done(InodeSet *s)
{
    Parent *p, *tmp;

    HASH_ITER (hh, s->parents, p, tmp) {
        HASH_DEL(s->parents, p);
        free(p);
    }
    free(s->inodes);
}

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

int stage_metadata_finish(StageMetadata *e, const Volume *v)
{
    Ext2Metadata *m = NULL;
    char device[300];
    int k;

    if (strncmp(v->fstype, "ext", 3) != 0)
        return 0;
    snprintf(device, sizeof(device), "/dev/%s", v->device);
    k = ext2_metadata_open(device, &m);
    if (k < 0) {
        log_debug_errno(k, "libext2fs cannot read %s, ignoring: %m", device);
        return k == -ENOMEM ? k : 0;
    }
    if (e->source == METADATA_SOURCE_CACHESTAT) {
        RangeSet kept = {0};

        k = ext2_metadata_filter(m, &e->ranges, &kept);
        if (k >= 0) {
            range_set_done(&e->ranges);
            e->ranges = kept;
        }
    } else {
        inode_set_sort(&e->inodes);
        for (size_t i = 0; i < e->inodes.n && k != -ENOMEM; i++)
            if (i == 0 || e->inodes.inodes[i] != e->inodes.inodes[i - 1])
                k = ext2_metadata_of_inode(m, e->inodes.inodes[i], &e->ranges);
        e->source = METADATA_SOURCE_DERIVED;
    }
    ext2_metadata_free(m);
    return k == -ENOMEM ? k : 0;
}

/* Inodes of the file and of the directories above, for deriving metadata: a lookup reads them all.
 */
int stage_metadata_note(StageMetadata *e, const Volume *v, const char *path, uint64_t inode)
{
    InodeSet *inodes = &e->inodes;
    char p[PATH_MAX];
    struct stat st;
    int k;

    if (e->source == METADATA_SOURCE_CACHESTAT || strncmp(v->fstype, "ext", 3) != 0)
        return 0;
    k = inode_set_add(inodes, inode);
    snprintf(p, sizeof(p), "%s", path);
    for (char *slash = strrchr(p, '/'); k >= 0 && slash; slash = strrchr(p, '/')) {
        slash[slash == p] = 0; /* "/" itself stays */
        if (!path_is_below(p, v->target) || lstat(p, &st) < 0 || st.st_dev != v->st_dev)
            return 0;
        k = inode_set_add_parent(inodes, st.st_ino);
        if (k == 0 || slash == p)
            return 0; /* and all above it are known */
    }
    return k < 0 ? k : 0;
}

void stage_metadata_done(StageMetadata *e)
{
    range_set_done(&e->ranges);
    inode_set_done(&e->inodes);
}
