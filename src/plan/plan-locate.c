/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Finds predicted files on the disk. All system calls of planning are made here, in disk-access.c,
 * and in the functions of src/base, src/system and src/volume that these files call. This file has
 * over 500 lines because only these two files of the folder make system calls. */

#include "plan/plan.h"

#include "model/ownership.h"
#include "plan/disk-access.h"
#include "plan/located-metadata.h"
#include "plan/maps.h"
#include "plan/seen-metadata.h"
#include "system/disk-call.h"
#include "volume/metadata-deriver.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* The largest number of extents of all files together. They take 32 MB. */
#define EXTENTS_MAX ((size_t)1000000)

/* (device, inode) -> located file */
typedef struct Inode {
    UT_hash_handle hh;
    struct {
        uint64_t dev, inode;
    } key;
    size_t file;
    bool has_extents; /* its extents were read */
    bool oom;
} Inode;

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(elt) ((elt)->oom = true)

typedef struct Locator {
    LocatedPlan *l;
    const VolumeTable *volumes;
    const char *root;
    int *fds;                   /* per volume: descriptor of its mount point, or a negative errno */
    MetadataDeriver **derivers; /* per volume: NULL where metadata cannot be derived */
    bool *known;                /* per volume: the model has metadata ranges of it, observed until
                                   `known_until` */
    usec_t known_until;
    uint32_t uid; /* owner of the set: a user, OWNERSHIP_ANYBODY or OWNERSHIP_SYSTEM */
    Inode *inodes;
    ExtentList extents; /* of the current file */
    size_t n_extents;   /* of all files */
} Locator;

static PlanSkip skip_of_errno(int error)
{
    switch (error) {
    case -ENOENT:
    case -ENOTDIR:
    case -ESTALE:
        return PLAN_SKIP_GONE;
    case -ELOOP:
    case -ENAMETOOLONG:
        return PLAN_SKIP_TYPE;
    case -EXDEV:
        return PLAN_SKIP_FILESYSTEM;
    case -EACCES:
    case -EPERM:
        return PLAN_SKIP_DENIED;
    default:
        return PLAN_SKIP_ERROR;
    }
}

/* Finds or adds the entry of an inode. Returns 1 if it was found, 0 if it was added, or -ENOMEM. */
static int find_inode(Locator *x, const struct stat *st, Inode **ret)
{
    Inode *e = calloc(1, sizeof(*e)), *found;

    if (!e)
        return -ENOMEM;
    e->key.dev = st->st_dev;
    e->key.inode = st->st_ino;
    HASH_FIND(hh, x->inodes, &e->key, sizeof(e->key), found);
    if (!found) {
        HASH_ADD(hh, x->inodes, key, sizeof(e->key), e);
        if (!e->oom) {
            *ret = e;
            return 0;
        }
    }
    free(e);
    *ret = found;
    return found ? 1 : -ENOMEM;
}

static int read_extents(Locator *x, int path_fd, LocatedFile *f)
{
    int r = disk_read_extents(volume_call_dev(&x->volumes->volumes[f->volume]), path_fd,
                              MIN((size_t)EXTENTS_PER_FILE_MAX, EXTENTS_MAX - x->n_extents),
                              &x->extents);

    if (r == -EOPNOTSUPP || r == -E2BIG)
        return 0; /* the place is unknown: the file is read after the others */
    if (r < 0)
        return r;
    if (x->extents.n == 0) {
        /* Data that has no place yet is read after the other files. Else there is nothing to read:
         * data in the inode, a hole, or zeros that were allocated. The delayed end of a file that
         * grows, such as a journal, does not count: the rest keeps its place. */
        if (x->extents.n_delayed == 0)
            f->n_maps = 0;
        return 0;
    }
    f->extents = reallocarray(NULL, x->extents.n, sizeof(Extent));
    if (!f->extents)
        return -ENOMEM;
    memcpy(f->extents, x->extents.extents, x->extents.n * sizeof(Extent));
    f->n_extents = x->extents.n;
    x->n_extents += x->extents.n;
    return 0;
}

/* Unites the file's maps with those of this name, and reads its extents if it has maps. */
static int add_maps(Locator *x, const PredictedFile *p, int path_fd, LocatedFile *f, Inode *e)
{
    _cleanup_free_ PredictedRange *clipped = NULL;
    PredictedRange *both;
    size_t n, n_both;
    int r = maps_clip(p->maps, p->n_maps, f->size_bytes, &clipped, &n);

    if (r < 0 || n == 0)
        return r;
    if (e->has_extents && f->n_maps == 0)
        return 0; /* nothing of it is on the device */
    r = maps_union(f->maps, f->n_maps, clipped, n, &both, &n_both);
    if (r < 0)
        return r;
    free(f->maps);
    f->maps = both;
    f->n_maps = n_both;
    if (e->has_extents)
        return 0;
    e->has_extents = true;
    return read_extents(x, path_fd, f);
}

/* Sessions look up most other directories without reading their entries. */
static bool is_listed(const PredictedFile *p, const struct stat *st)
{
    return S_ISDIR(st->st_mode) && p->directory;
}

static int new_file(Locator *x, const PredictedFile *p, const Volume *v, const char *below,
                    const struct stat *st, Inode *e)
{
    LocatedFile f = {
            .volume = (uint32_t)(v - x->volumes->volumes),
            .directory = S_ISDIR(st->st_mode),
            .listed = is_listed(p, st),
            .symlink = S_ISLNK(st->st_mode),
            .nested = st->st_dev != v->st_dev,
            .of_root = st->st_uid == 0,
            .inode = st->st_ino,
            .size_bytes = S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_size,
            .mtime_nsec = (int64_t)timespec_nsec(&st->st_mtim),
            .ctime_nsec = (int64_t)timespec_nsec(&st->st_ctim),
            .touched = p->touched,
            .probability = p->probability,
            .first_use = p->first_use,
    };
    int r = grow_array(&x->l->files, &x->l->allocated_files, x->l->n_files + 1, sizeof(f));

    if (r < 0)
        return r;
    f.path = strdup(below);
    if (!f.path)
        return -ENOMEM;
    e->file = x->l->n_files;
    x->l->files[x->l->n_files++] = f;
    return 0;
}

/* Returns true if the file was created after `moment`: then no session before `moment` has read its
 * inode. Returns false also if the filesystem does not store the time of creation. */
static bool made_since(int fd, usec_t moment)
{
    struct statx st;

    return statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &st) >= 0 && st.stx_mask & STATX_BTIME &&
           st.stx_btime.tv_sec >= 0 &&
           (usec_t)st.stx_btime.tv_sec * USEC_PER_SEC + st.stx_btime.tv_nsec / NSEC_PER_USEC >
                   moment;
}

/* A predicted path that was found. */
typedef struct Found {
    const Volume *v;
    uint32_t volume;   /* its index */
    const char *below; /* the path below the mount point */
    int fd;            /* O_PATH */
    struct stat st;
} Found;

/* A trace names symlinks only if their filesystem keeps metadata in a cache of its own. A symlink
 * has no maps. */
static bool has_planned_type(const PredictedFile *p, const Volume *v, const struct stat *st)
{
    return S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) ||
           (S_ISLNK(st->st_mode) && p->n_maps == 0 && !volume_is_ext(v));
}

/* The mode of a symlink says that everybody may write, which nobody can. */
static mode_t access_mode(const struct stat *st)
{
    return S_ISLNK(st->st_mode) ? S_IFLNK : st->st_mode;
}

/* Finds and opens a predicted path. Returns 0 if it was found: the caller closes ret->fd. Returns 1
 * if it is skipped: *skip is the reason. */
static int find_file(const Locator *x, const PredictedFile *p, Found *ret, PlanSkip *skip)
{
    _cleanup_close_ int fd = -EBADF;
    Found f = {.fd = -EBADF};

    f.v = volume_of_path(x->volumes, x->root, p->path, &f.below);
    /* Without a UUID a pack cannot name the filesystem. */
    if (!f.v || !f.v->uuid[0]) {
        *skip = PLAN_SKIP_FILESYSTEM;
        return 1;
    }
    f.volume = (uint32_t)(f.v - x->volumes->volumes);
    fd = disk_open_beneath(volume_call_dev(f.v), x->fds[f.volume], f.below);
    if (fd < 0 || fstat(fd, &f.st) < 0)
        *skip = skip_of_errno(fd < 0 ? fd : -errno);
    else if (!has_planned_type(p, f.v, &f.st))
        *skip = PLAN_SKIP_TYPE;
    /* No mount was crossed, so on btrfs a different device number means a subvolume inside this
     * one. */
    else if (f.st.st_dev != f.v->st_dev && strcmp(f.v->fstype, "btrfs") != 0)
        *skip = PLAN_SKIP_FILESYSTEM;
    else if (!ownership_allows(f.st.st_uid, f.st.st_gid, access_mode(&f.st), x->uid))
        *skip = PLAN_SKIP_OWNER;
    else {
        f.fd = TAKE_FD(fd);
        *ret = f;
        return 0;
    }
    return 1;
}

/* Notes the file for the metadata deriver if its metadata was not observed. Returns 0 or
 * -ENOMEM. */
static int note_metadata(Locator *x, const Found *f, const PredictedFile *p)
{
    MetadataDeriver *d = x->derivers[f->volume];

    if (!d || disk_call_hangs(volume_call_dev(f->v)) ||
        (x->known[f->volume] && !p->metadata_unknown && !made_since(f->fd, x->known_until)))
        return 0;
    /* In a subvolume inside this one, the numbers of inodes mean something else. */
    if (f->st.st_dev != f->v->st_dev)
        return 0;
    return metadata_deriver_note(
            d, &(NotedFile){f->below, f->st.st_ino, is_listed(p, &f->st), p->probability});
}

/* Finds or adds the located file of this inode. It exists already if another name of the file was
 * located. Returns 0 or -ENOMEM. */
static int add_file(Locator *x, const PredictedFile *p, const Found *found, Inode **ret)
{
    LocatedFile *f;
    int r = find_inode(x, &found->st, ret);

    if (r < 0)
        return r;
    if (r == 0)
        return new_file(x, p, found->v, found->below, &found->st, *ret);
    f = &x->l->files[(*ret)->file];
    f->probability = MAX(f->probability, p->probability);
    f->first_use = MIN(f->first_use, p->first_use);
    f->listed = f->listed || is_listed(p, &found->st);
    f->touched = f->touched && p->touched;
    x->l->n_skipped[PLAN_SKIP_DUPLICATE]++;
    return 0;
}

/* Locates a file. Returns 0, or -ENOMEM, or 1 if the file or its data is skipped: *skip is the
 * reason. */
static int locate_file(Locator *x, const PredictedFile *p, PlanSkip *skip)
{
    _cleanup_close_ int fd = -EBADF;
    LocatedFile *f;
    Found found;
    Inode *e;
    int r = find_file(x, p, &found, skip);

    if (r != 0)
        return r;
    fd = found.fd;
    r = note_metadata(x, &found, p);
    if (r >= 0)
        r = add_file(x, p, &found, &e);
    if (r < 0)
        return r;
    f = &x->l->files[e->file];
    r = f->directory || f->symlink ? 0 : add_maps(x, p, fd, f, e);
    if (r == -ENOMEM)
        return r;
    if (r < 0) { /* the file stays in the plan without data: opening it reads its metadata */
        f->n_maps = 0;
        *skip = skip_of_errno(r);
        return 1;
    }
    return 0;
}

/* Adds the metadata ranges that the model knows for the UUID of the volume. Returns 1 if any of
 * them was observed, 0 if none was, or -ENOMEM. */
static int known_metadata(Locator *x, const Prediction *p, uint32_t volume)
{
    const Volume *v = &x->volumes->volumes[volume];
    bool observed = false;

    for (size_t i = 0; v->uuid[0] && i < p->n_metadata; i++) {
        const PredictedMetadata *m = &p->metadata[i];

        if (strcmp(m->uuid, v->uuid) != 0 || m->range.length == 0)
            continue;
        if (located_metadata_add(x->l, volume, m->range, (MetadataItem){0}) < 0)
            return -ENOMEM;
        observed = observed || !m->assumed;
    }
    return observed;
}

static int locate_volumes(Locator *x, const Prediction *p)
{
    for (uint32_t i = 0; i < x->volumes->n; i++) {
        const Volume *v = &x->volumes->volumes[i];
        int r;

        x->fds[i] = volume_open(v->target, v->st_dev);
        if (v->block_dev == 0)
            continue;
        r = volume_has_items(v) ? 0 : known_metadata(x, p, i);
        x->known[i] = r > 0;
        if (r >= 0 && x->fds[i] >= 0 && (volume_is_ext(v) || volume_has_items(v)))
            r = metadata_deriver_new(v, x->fds[i], &x->derivers[i]);
        if (r == -ENOMEM)
            return r;
    }
    return 0;
}

static int derive_metadata(Locator *x)
{
    for (uint32_t i = 0; i < x->volumes->n; i++) {
        _cleanup_free_ DerivedMetadata *derived = NULL;
        size_t n = 0;

        /* ext4 reads its block bitmaps soon after the mount, thus in a boot. */
        if (x->derivers[i] && x->l->stage == STAGE_BOOT && located_plan_has_files(x->l, i))
            metadata_deriver_want_bitmaps(x->derivers[i]);
        /* A device that cannot be read has no ranges: opening the files reads their metadata. */
        if (x->derivers[i] &&
            disk_finish_metadata(volume_call_dev(&x->volumes->volumes[i]), TAKE_PTR(x->derivers[i]),
                                 &derived, &n) == -ENOMEM)
            return -ENOMEM;
        for (size_t k = 0; k < n; k++)
            if (located_metadata_add_derived(x->l, i, &derived[k]) < 0)
                return -ENOMEM;
    }
    return located_metadata_make_disjoint(x->l);
}

/* Notes where the data of the file lies. Returns 0 or -ENOMEM. */
static int note_data(Locator *x, const LocatedFile *f)
{
    MetadataDeriver *d = x->derivers[f->volume];

    for (size_t i = 0, k = 0; d && !f->nested && i < f->n_maps && k < f->n_extents;) {
        const PredictedRange *m = &f->maps[i];
        const Extent *e = &f->extents[k];
        uint64_t begin = MAX(m->offset, e->logical);
        uint64_t end = MIN(m->offset + m->length, e->logical + e->length);

        if (begin < end &&
            metadata_deriver_note_data(d, f->inode,
                                       &(PredictedRange){begin, end - begin, m->probability},
                                       e->physical + (begin - e->logical)) < 0)
            return -ENOMEM;
        if (m->offset + m->length <= e->logical + e->length)
            i++;
        else
            k++;
    }
    return 0;
}

static void locator_done(Locator *x)
{
    Inode *e, *tmp;

    HASH_ITER (hh, x->inodes, e, tmp) {
        HASH_DEL(x->inodes, e);
        free(e);
    }
    for (size_t i = 0; x->derivers && i < x->volumes->n; i++)
        metadata_deriver_free(x->derivers[i]);
    free(x->derivers);
    free(x->known);
    for (size_t i = 0; x->fds && i < x->volumes->n; i++)
        if (x->fds[i] >= 0)
            close(x->fds[i]);
    free(x->fds);
    extent_list_done(&x->extents);
    located_plan_free(x->l);
}

int plan_locate(const Prediction *p, const char *root, const VolumeTable *volumes, uint32_t uid,
                usec_t known_until, LocatedPlan **ret)
{
    _cleanup_(locator_done) Locator x = {
            .volumes = volumes,
            .known_until = known_until,
            .uid = uid,
            .root = root,
    };
    struct stat st;
    int r;

    if (stat(root, &st) < 0)
        return -errno;
    x.l = calloc(1, sizeof(LocatedPlan));
    x.derivers = calloc(volumes->n + 1, sizeof(MetadataDeriver *));
    x.known = calloc(volumes->n + 1, sizeof(*x.known));
    x.fds = reallocarray(NULL, volumes->n + 1, sizeof(int));
    if (!x.l || !x.derivers || !x.known || !x.fds)
        return -ENOMEM;
    for (size_t i = 0; i < volumes->n; i++)
        x.fds[i] = -EXDEV;
    x.l->stage = p->stage;
    x.l->volumes = volumes;
    x.l->passing = calloc(volumes->n + 1, sizeof(RangeSet));
    if (!x.l->passing)
        return -ENOMEM;

    r = locate_volumes(&x, p);
    if (r < 0)
        return r;
    for (size_t i = 0; i < p->n_files; i++) {
        PlanSkip skip;

        r = locate_file(&x, &p->files[i], &skip);
        if (r < 0)
            return r;
        if (r > 0)
            x.l->n_skipped[skip]++;
    }
    for (size_t i = 0; i < x.l->n_files; i++)
        if (note_data(&x, &x.l->files[i]) < 0)
            return -ENOMEM;
    r = derive_metadata(&x);
    if (r >= 0)
        r = seen_metadata_keep(x.l, p);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(x.l);
    return 0;
}
