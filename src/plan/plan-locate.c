/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Finds predicted files on the disk. Everything that touches the system while planning is here. */

#include "plan/plan.h"
#include "volume/ext2-metadata.h"
#include "volume/mountinfo.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* (device, inode) -> seen */
typedef struct Inode {
    UT_hash_handle hh;
    struct {
        uint64_t dev, inode;
    } key;
    bool oom;
} Inode;

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(elt) ((elt)->oom = true)

typedef struct Locator {
    LocatedPlan *l;
    const VolumeTable *volumes;
    int root_fd;
    Inode *inodes;
    ExtentList extents; /* reused */
    RangeSet *parents;  /* per volume: inodes whose metadata the opening of files needs */
} Locator;

/* 1: seen before, 0: new, -ENOMEM */
static int note_inode(Locator *x, uint64_t dev, uint64_t inode)
{
    Inode *e = calloc(1, sizeof(*e)), *found;

    if (!e)
        return -ENOMEM;
    e->key.dev = dev;
    e->key.inode = inode;
    HASH_FIND(hh, x->inodes, &e->key, sizeof(e->key), found);
    if (found) {
        free(e);
        return 1;
    }
    HASH_ADD(hh, x->inodes, key, sizeof(e->key), e);
    if (e->oom) {
        free(e);
        return -ENOMEM;
    }
    return 0;
}

/* Opens without effect on whatever the path has become: no symlink, no device, no automount. */
static int open_path(int root_fd, const char *path)
{
    struct open_how how = {
            .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

    return fd < 0 ? -errno : (int)fd;
}

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
    case -EACCES:
    case -EPERM:
        return PLAN_SKIP_DENIED;
    default:
        return PLAN_SKIP_ERROR;
    }
}

/* The path below the volume's mount point. The mount point itself is ".". */
static const char *below_mountpoint(const Volume *v, const char *path)
{
    size_t l = strlen(v->mountpoint);

    if (!path_is_below(path, v->mountpoint))
        return NULL;
    while (l > 0 && v->mountpoint[l - 1] == '/')
        l--;
    path += l;
    while (*path == '/')
        path++;
    return *path ? path : ".";
}

/* Maps clipped to what the file is now. */
static int clip_maps(const PredictedFile *p, uint64_t size, LocatedFile *f)
{
    if (p->n_maps == 0)
        return 0;
    f->maps = calloc(p->n_maps, sizeof(PredictedMap));
    if (!f->maps)
        return -ENOMEM;
    for (size_t i = 0; i < p->n_maps; i++) {
        PredictedMap m = p->maps[i];

        if (m.offset >= size)
            continue;
        m.length = MIN(m.length, size - m.offset);
        f->maps[f->n_maps++] = m;
    }
    return 0;
}

static int read_extents(Locator *x, int path_fd, LocatedFile *f)
{
    char proc[64];
    int fd, r;

    snprintf(proc, sizeof(proc), "/proc/self/fd/%d", path_fd);
    fd = open(proc, O_RDONLY | O_NOATIME | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno == EPERM)
        fd = open(proc, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    x->extents.n = 0;
    r = extents_read(fd, &x->extents);
    close(fd);
    if (r == -EOPNOTSUPP)
        return 0; /* places unknown: they come last */
    if (r < 0)
        return r;
    if (x->extents.n == 0) {
        f->n_maps = 0; /* nothing on the device: inline, a hole, or not written yet */
        return 0;
    }
    f->extents = calloc(x->extents.n, sizeof(Extent));
    if (!f->extents)
        return -ENOMEM;
    memcpy(f->extents, x->extents.extents, x->extents.n * sizeof(Extent));
    f->n_extents = x->extents.n;
    return 0;
}

/* 0 located, 1 skipped (*skip says why), or -ENOMEM */
static int locate_file(Locator *x, const PredictedFile *p, PlanSkip *skip)
{
    _cleanup_close_ int fd = open_path(x->root_fd, p->path);
    LocatedFile f = {.probability = p->probability, .first_use = p->first_use};
    const Volume *v;
    const char *path;
    struct stat st;
    int r;

    if (fd < 0) {
        *skip = skip_of_errno(fd);
        return 1;
    }
    if (fstat(fd, &st) < 0) {
        *skip = PLAN_SKIP_ERROR;
        return 1;
    }
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        *skip = PLAN_SKIP_TYPE;
        return 1;
    }
    v = volume_by_dev(x->volumes, st.st_dev);
    path = v ? below_mountpoint(v, p->path) : NULL;
    if (!path) {
        *skip = PLAN_SKIP_FILESYSTEM;
        return 1;
    }
    r = note_inode(x, st.st_dev, st.st_ino);
    if (r != 0) {
        *skip = PLAN_SKIP_DUPLICATE;
        return r;
    }

    f.volume = (uint32_t)(v - x->volumes->volumes);
    f.directory = S_ISDIR(st.st_mode);
    f.inode = st.st_ino;
    f.size_bytes = f.directory ? 0 : (uint64_t)st.st_size;
    f.mtime_nsec = (int64_t)st.st_mtim.tv_sec * (int64_t)NSEC_PER_SEC + st.st_mtim.tv_nsec;
    f.ctime_nsec = (int64_t)st.st_ctim.tv_sec * (int64_t)NSEC_PER_SEC + st.st_ctim.tv_nsec;
    r = grow_array(&x->l->files, &x->l->allocated_files, x->l->n_files + 1, sizeof(LocatedFile));
    if (r >= 0 && !f.directory)
        r = clip_maps(p, f.size_bytes, &f);
    if (r >= 0 && f.n_maps > 0) {
        r = read_extents(x, fd, &f);
        if (r < 0 && r != -ENOMEM) {
            free(f.maps);
            *skip = skip_of_errno(r);
            return 1;
        }
    }
    if (r >= 0) {
        f.path = strdup(path);
        r = f.path ? 0 : -ENOMEM;
    }
    if (r < 0) {
        free(f.maps);
        free(f.extents);
        return r;
    }
    x->l->files[x->l->n_files++] = f;
    return 0;
}

/* Inodes of the file and of every directory above it, up to the mount point. */
static int note_parents(Locator *x, const LocatedFile *f)
{
    const Volume *v = &x->volumes->volumes[f->volume];
    char path[2 * PATH_MAX];
    RangeSet *inodes = &x->parents[f->volume];
    struct stat st;
    int r = range_set_add(inodes, f->inode, f->inode + 1);

    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "%s/%s", v->target, f->path);
    for (char *slash = strrchr(path, '/'); slash && slash > path; slash = strrchr(path, '/')) {
        *slash = 0;
        if (!path_is_below(path, v->target) || lstat(path, &st) < 0 || st.st_dev != v->st_dev)
            break;
        if (range_set_contains(inodes, st.st_ino))
            break; /* and so are all above it */
        r = range_set_add(inodes, st.st_ino, st.st_ino + 1);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Metadata of a filesystem that the model does not know by its UUID, by libext2fs. */
static int derive_metadata(Locator *x, uint32_t volume)
{
    const Volume *v = &x->volumes->volumes[volume];
    _cleanup_range_set_ RangeSet ranges = {0};
    Ext2Metadata *m = NULL;
    char device[300];
    int r;

    for (size_t i = 0; i < x->l->n_files; i++)
        if (x->l->files[i].volume == volume) {
            r = note_parents(x, &x->l->files[i]);
            if (r < 0)
                return r;
        }
    if (x->parents[volume].n == 0)
        return 0;
    snprintf(device, sizeof(device), "/dev/%s", v->device);
    r = ext2_metadata_open(device, &m);
    if (r < 0)
        return r == -ENOMEM ? r : 0; /* no metadata then: the opening pass will read it */
    for (size_t i = 0; i < x->parents[volume].n; i++)
        for (uint64_t k = x->parents[volume].ranges[i].start;
             r != -ENOMEM && k < x->parents[volume].ranges[i].end; k++)
            r = ext2_metadata_of_inode(m, k, &ranges);
    ext2_metadata_free(m);
    for (size_t i = 0; r != -ENOMEM && i < ranges.n; i++) {
        r = grow_array(&x->l->metadata, &x->l->allocated_metadata, x->l->n_metadata + 1,
                       sizeof(LocatedMetadata));
        if (r >= 0)
            x->l->metadata[x->l->n_metadata++] = (LocatedMetadata){
                    .volume = volume,
                    .offset = ranges.ranges[i].start,
                    .length = ranges.ranges[i].end - ranges.ranges[i].start,
                    .probability = 1.0,
            };
    }
    x->l->metadata_derived = true;
    return r == -ENOMEM ? r : 0;
}

static int locate_metadata(Locator *x, const Prediction *p, uint32_t volume)
{
    const Volume *v = &x->volumes->volumes[volume];
    size_t before = x->l->n_metadata;

    for (uint32_t i = 0; i < volume; i++)
        if (x->volumes->volumes[i].block_dev == v->block_dev)
            return 0; /* another subvolume or mount of the same device has it */
    for (size_t i = 0; v->uuid[0] && i < p->n_metadata; i++) {
        const PredictedMetadata *m = &p->metadata[i];

        if (strcmp(m->uuid, v->uuid) != 0)
            continue;
        if (grow_array(&x->l->metadata, &x->l->allocated_metadata, x->l->n_metadata + 1,
                       sizeof(LocatedMetadata)) < 0)
            return -ENOMEM;
        x->l->metadata[x->l->n_metadata++] =
                (LocatedMetadata){volume, m->offset, m->length, m->probability};
    }
    if (x->l->n_metadata == before && strncmp(v->fstype, "ext", 3) == 0)
        return derive_metadata(x, volume);
    return 0;
}

static void locator_done(Locator *x)
{
    Inode *e, *tmp;

    HASH_ITER (hh, x->inodes, e, tmp) {
        HASH_DEL(x->inodes, e);
        free(e);
    }
    for (size_t i = 0; x->parents && i < x->volumes->n; i++)
        range_set_done(&x->parents[i]);
    free(x->parents);
    extent_list_done(&x->extents);
    if (x->root_fd >= 0)
        close(x->root_fd);
    located_plan_free(x->l);
}

int plan_locate(const Prediction *p, const char *root, const VolumeTable *volumes,
                LocatedPlan **ret)
{
    _cleanup_(locator_done) Locator x = {.volumes = volumes, .root_fd = -EBADF};
    int r = 0;

    x.l = calloc(1, sizeof(LocatedPlan));
    x.parents = calloc(volumes->n + 1, sizeof(RangeSet));
    if (!x.l || !x.parents)
        return -ENOMEM;
    x.l->stage = p->stage;
    x.l->volumes = volumes;
    x.root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (x.root_fd < 0)
        return -errno;

    for (size_t i = 0; i < p->n_files; i++) {
        PlanSkip skip;

        r = locate_file(&x, &p->files[i], &skip);
        if (r < 0)
            return r;
        if (r > 0)
            x.l->n_skipped[skip]++;
    }
    for (uint32_t i = 0; i < volumes->n; i++) {
        r = locate_metadata(&x, p, i);
        if (r < 0)
            return r;
    }
    *ret = TAKE_PTR(x.l);
    return 0;
}
