/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "session/launch-observation.h"

#include "base/clock.h"
#include "base/open.h"
#include "execute/mounted.h"
#include "observe/file-pages.h"
#include "observe/volume-snapshots.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* A file of the set. */
typedef struct ObservedFile {
    bool known; /* the first sample succeeded */
    CachedPages before;
    RangeSet planned; /* what the set has of the file */
} ObservedFile;

struct LaunchObservation {
    LaunchKey key;
    char *root;
    char *buf; /* the pack points into it */
    Pack pack;
    VolumeSnapshots metadata;
    ObservedFile *files; /* as in the pack */
};

/* --- one file --------------------------------------------------------------------------------- */

/* Samples one file. Returns 1; 0 if nothing is known; -EAGAIN if its name is not in memory; or
 * -ENOMEM. */
static int sample_file(const Volume *v, int root_fd, const char *path, const PackFile *f,
                       usec_t deadline, CachedPages *ret)
{
    _cleanup_close_ int fd = open_beneath_cached(root_fd, path);
    FilePagesQuery q = {.deadline = deadline};
    struct stat st;
    int r;

    if (fd == -EAGAIN)
        return fd;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
        (st.st_ino != le64toh(f->inode) && !(le16toh(f->flags) & PACK_FILE_VOLATILE)))
        return 0;
    q.size_bytes = (uint64_t)st.st_size;
    r = file_pages_read(volume_call_dev(v), fd, &q, &ret->resident);
    q.reclaimed = true;
    if (r == 0)
        r = file_pages_read(volume_call_dev(v), fd, &q, &ret->seen);
    return r == -ENOMEM ? r : r == 0;
}

/* --- all files -------------------------------------------------------------------------------- */

static const Volume *find_volume(const VolumeTable *t, const PackVolume *p)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->volumes[i].uuid[0] &&
            memcmp(t->volumes[i].uuid_bytes, p->uuid, sizeof(p->uuid)) == 0 &&
            t->volumes[i].subvolume_id == le64toh(p->subvolume_id))
            return &t->volumes[i];
    return NULL;
}

/* Called for each file that is sampled, with the result of sample_file() in `r`. Returns 0 or a
 * negative errno. */
typedef int (*on_file_t)(LaunchObservation *o, const Volume *v, uint32_t file, CachedPages *pages,
                         int r, void *arg);

static int sample_volume(LaunchObservation *o, const Volume *v, uint32_t volume, int root_fd,
                         usec_t deadline, on_file_t f, void *arg)
{
    const PackVolume *p = &o->pack.volumes[volume];
    uint32_t first = le32toh(p->first_file);

    for (uint32_t i = first; i < first + le32toh(p->n_files); i++) {
        const PackFile *file = &o->pack.files[i];
        CachedPages pages = {0};
        int r;

        if (le16toh(file->flags) & PACK_FILE_DIRECTORY)
            continue;
        if (clock_now(CLOCK_MONOTONIC) >= deadline)
            break;
        r = sample_file(v, root_fd, pack_string(&o->pack, file->path), file, deadline, &pages);
        if (r != -ENOMEM)
            r = f(o, v, i, &pages, r, arg);
        cached_pages_done(&pages);
        if (r < 0)
            return r;
    }
    return 0;
}

static int sample_files(LaunchObservation *o, const VolumeTable *t, on_file_t f, void *arg)
{
    usec_t deadline = clock_now(CLOCK_MONOTONIC) + LAUNCH_OBSERVATION_USEC;
    _cleanup_mounted_table_ MountedTable mounted = {0};
    int r = mounted_table_read(&o->pack, o->root, &mounted);

    for (uint32_t i = 0; r >= 0 && i < mounted.n; i++) {
        const Volume *v = find_volume(t, &o->pack.volumes[i]);

        if (v && mounted.volumes[i].root_fd >= 0)
            r = sample_volume(o, v, i, mounted.volumes[i].root_fd, deadline, f, arg);
    }
    return r;
}

/* --- the first sample ------------------------------------------------------------------------- */

static int keep_first(LaunchObservation *o, const Volume *v _unused_, uint32_t file,
                      CachedPages *pages, int r, void *arg _unused_)
{
    ObservedFile *x = &o->files[file];

    x->known = r > 0 || r == -EAGAIN;
    x->before = *pages;
    *pages = (CachedPages){0};
    return 0;
}

static int compare_data(const void *a, const void *b)
{
    const PackData *x = *(const PackData *const *)a, *y = *(const PackData *const *)b;

    if (x->file != y->file)
        return le32toh(x->file) < le32toh(y->file) ? -1 : 1;
    return le64toh(x->offset) < le64toh(y->offset) ? -1 : le64toh(x->offset) > le64toh(y->offset);
}

/* The pack has the data in physical order. Inserting a hundred thousand ranges of a fragmented file
 * in that order would take seconds. */
static int collect_planned(LaunchObservation *o)
{
    uint32_t n = le32toh(o->pack.header->n_data);
    _cleanup_free_ const PackData **data = calloc((size_t)n + 1, sizeof(void *));

    if (!data)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        data[i] = &o->pack.data[i];
    qsort(data, n, sizeof(void *), compare_data);
    for (uint32_t i = 0; i < n; i++)
        CHECK(range_set_insert(&o->files[le32toh(data[i]->file)].planned, le64toh(data[i]->offset),
                               le64toh(data[i]->length)));
    return 0;
}

int launch_observation_begin(LaunchKey key, const char *root, const VolumeTable *t, char **buf,
                             const Pack *p, LaunchObservation **ret)
{
    _cleanup_(launch_observation_freep) LaunchObservation *o = calloc(1, sizeof(*o));
    int r;

    if (!o)
        return -ENOMEM;
    o->key = key;
    o->pack = *p;
    /* Metadata first: the start has hardly begun, and its first reads are of metadata. */
    r = volume_snapshots_begin(&o->metadata, t);
    if (r < 0)
        return r;
    o->root = strdup(root);
    o->files = calloc((size_t)le32toh(p->header->n_files) + 1, sizeof(*o->files));
    if (!o->root || !o->files)
        return -ENOMEM;
    CHECK(sample_files(o, t, keep_first, NULL));
    CHECK(collect_planned(o));
    o->buf = TAKE_PTR(*buf);
    *ret = TAKE_PTR(o);
    return 0;
}

/* --- the second sample ------------------------------------------------------------------------ */

static int add_file(LaunchObservation *o, const Volume *v, uint32_t file, CachedPages *after, int r,
                    void *arg)
{
    _cleanup_range_set_ RangeSet needed = {0};
    const ObservedFile *x = &o->files[file];
    LaunchUse *use = arg;

    if (!x->known || r <= 0)
        return 0;
    CHECK(launch_need_compute(&x->before, after, &x->planned, &needed));
    return launch_use_add(use, v->uuid, le64toh(o->pack.files[file].inode), &needed);
}

static int add_metadata(const LaunchObservation *o, const Volume *v, const PackVolume *p,
                        LaunchUse *use)
{
    _cleanup_range_set_ RangeSet planned = {0}, added = {0}, unknown = {0}, needed = {0};
    const VolumeSnapshot *x = NULL;

    for (size_t i = 0; i < o->metadata.n; i++)
        if (o->metadata.items[i].st_dev == v->st_dev)
            x = &o->metadata.items[i];
    if (!x || volume_snapshots_added(&o->metadata, v, &added) < 0)
        return 0;
    for (uint32_t i = 0; i < le32toh(p->n_metadata); i++) {
        const PackMetadata *m = &o->pack.metadata[le32toh(p->first_metadata) + i];

        if (m->reader == METADATA_OF_DEVICE)
            CHECK(range_set_insert(&planned, le64toh(m->offset), le64toh(m->length)));
    }
    CHECK(range_set_intersect(&x->resident_before, &planned, &unknown));
    CHECK(range_set_union(&added, &unknown, &needed));
    return launch_use_add(use, v->uuid, 0, &needed);
}

int launch_observation_end(LaunchObservation *o, const VolumeTable *t, LaunchUse *ret)
{
    LaunchUse use = {.key = o->key};
    int r = 0;

    for (uint32_t i = 0; r >= 0 && i < le32toh(o->pack.header->n_volumes); i++) {
        const PackVolume *p = &o->pack.volumes[i];
        const Volume *v = find_volume(t, p);

        if (v)
            r = add_metadata(o, v, p, &use);
    }
    if (r >= 0)
        r = sample_files(o, t, add_file, &use);
    if (r < 0)
        launch_use_done(&use);
    else
        *ret = use;
    return r;
}

LaunchObservation *launch_observation_free(LaunchObservation *o)
{
    if (!o)
        return NULL;
    for (uint32_t i = 0; o->files && i < le32toh(o->pack.header->n_files); i++) {
        cached_pages_done(&o->files[i].before);
        range_set_done(&o->files[i].planned);
    }
    free(o->files);
    volume_snapshots_done(&o->metadata);
    free(o->root);
    free(o->buf);
    free(o);
    return NULL;
}

LaunchKey launch_observation_key(const LaunchObservation *o)
{
    return o->key;
}
