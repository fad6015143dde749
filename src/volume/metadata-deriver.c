/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "volume/metadata-deriver-internal.h"

#include "base/open.h"
#include "volume/btrfs-trees.h"
#include "volume/ext2-metadata.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* path of a directory -> its inode */
typedef struct Parent {
    UT_hash_handle hh;
    Needed *needed;
    size_t n_names; /* looked up in it */
    bool oom;
    char path[];
} Parent;

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(elt) ((elt)->oom = true)

struct MetadataDeriver {
    Volume v; /* only what opening the volume needs */
    int volume_fd;
    bool ext, btrfs, xfs;
    bool bitmaps; /* metadata_deriver_want_bitmaps() */
    Needed *needed;
    Parent *parents;
    NeededName *names; /* btrfs only */
    size_t n_names, allocated_names;
    NeededData *data; /* btrfs only */
    size_t n_data, allocated_data;
};

int metadata_deriver_new(const Volume *v, int volume_fd, MetadataDeriver **ret)
{
    MetadataDeriver *d = calloc(1, sizeof(*d));

    if (!d)
        return -ENOMEM;
    *d = (MetadataDeriver){
            .v = {.block_dev = v->block_dev,
                  .subvolume_id = v->subvolume_id,
                  .removable = v->removable,
                  .of_system = v->of_system},
            .volume_fd = fcntl(volume_fd, F_DUPFD_CLOEXEC, 3),
            .ext = volume_is_ext(v),
            .btrfs = strcmp(v->fstype, "btrfs") == 0,
            .xfs = strcmp(v->fstype, "xfs") == 0,
    };
    if (d->volume_fd < 0) {
        free(d);
        return -errno;
    }
    *ret = d;
    return 0;
}

MetadataDeriver *metadata_deriver_free(MetadataDeriver *d)
{
    Needed *n, *next_needed;
    Parent *p, *next_parent;

    if (!d)
        return NULL;
    HASH_ITER (hh, d->needed, n, next_needed) {
        HASH_DEL(d->needed, n);
        free(n);
    }
    HASH_ITER (hh, d->parents, p, next_parent) {
        HASH_DEL(d->parents, p);
        free(p);
    }
    close(d->volume_fd);
    free(d->names);
    free(d->data);
    free(d);
    return NULL;
}

static int note_inode(MetadataDeriver *d, uint64_t inode, double probability, Needed **ret)
{
    Needed *n;

    HASH_FIND(hh, d->needed, &inode, sizeof(inode), n);
    if (!n) {
        n = calloc(1, sizeof(*n));
        if (!n)
            return -ENOMEM;
        n->inode = inode;
        HASH_ADD(hh, d->needed, inode, sizeof(inode), n);
        if (n->oom) {
            free(n);
            return -ENOMEM;
        }
    }
    n->probability = MAX(n->probability, probability);
    *ret = n;
    return 0;
}

/* Notes a directory. Returns 1 if the directory is new or its probability rose, so that the
 * probabilities of the directories above it may rise, too. Returns 0 if nothing changed, or
 * -ENOMEM. *ret is NULL if the directory was removed meanwhile. */
static int note_directory(MetadataDeriver *d, const char *path, double probability, Parent **ret)
{
    size_t l = strlen(path);
    struct stat st;
    Parent *p;
    int fd, r;

    HASH_FIND(hh, d->parents, path, l, p);
    *ret = p;
    if (p) {
        if (p->needed->probability >= probability)
            return 0;
        p->needed->probability = probability;
        return 1;
    }
    fd = open_beneath(d->volume_fd, path);
    if (fd < 0)
        return 0;
    r = fstat(fd, &st);
    close(fd);
    if (r < 0 || !S_ISDIR(st.st_mode))
        return 0;
    p = calloc(1, sizeof(*p) + l + 1);
    if (!p)
        return -ENOMEM;
    memcpy(p->path, path, l + 1);
    r = note_inode(d, st.st_ino, probability, &p->needed);
    if (r >= 0)
        HASH_ADD_KEYPTR(hh, d->parents, p->path, l, p);
    if (r < 0 || p->oom) {
        free(p);
        return -ENOMEM;
    }
    *ret = p;
    return 1;
}

/* Notes that the name of `named` is looked up in the directory. Returns 0 or -ENOMEM. */
static int note_name(MetadataDeriver *d, Parent *directory, const char *name, Needed *named,
                     double probability)
{
    if (directory && !named->named)
        directory->n_names++;
    named->named = true;
    if (!d->btrfs || !directory)
        return 0;
    if (grow_array(&d->names, &d->allocated_names, d->n_names + 1, sizeof(NeededName)) < 0)
        return -ENOMEM;
    d->names[d->n_names++] = (NeededName){directory->needed->inode,
                                          btrfs_name_hash(name, strlen(name)), probability};
    return 0;
}

int metadata_deriver_note(MetadataDeriver *d, const NotedFile *f)
{
    _cleanup_free_ char *above = NULL;
    Parent *directory;
    Needed *n;
    char *slash;
    int r = note_inode(d, f->inode, f->probability, &n);

    if (r < 0)
        return r;
    n->listed = n->listed || f->listed;
    if (f->listed && d->xfs && note_directory(d, f->path, f->probability, &directory) < 0)
        return -ENOMEM;
    if (strcmp(f->path, ".") == 0)
        return 0;
    above = strdup(f->path);
    if (!above)
        return -ENOMEM;
    do {
        const char *name = above;
        Needed *named = n;

        slash = strrchr(above, '/');
        if (slash) {
            *slash = 0;
            name = slash + 1;
        }
        r = note_directory(d, slash ? above : ".", f->probability, &directory);
        if (r >= 0 && note_name(d, directory, name, named, f->probability) < 0)
            return -ENOMEM;
        n = directory ? directory->needed : n;
    } while (r > 0 && slash);
    return r < 0 ? r : 0;
}

int metadata_deriver_note_data(MetadataDeriver *d, uint64_t inode, const PredictedRange *range,
                               uint64_t place)
{
    if (!d->btrfs || range->length == 0)
        return 0;
    if (grow_array(&d->data, &d->allocated_data, d->n_data + 1, sizeof(NeededData)) < 0)
        return -ENOMEM;
    d->data[d->n_data++] = (NeededData){inode, *range, place};
    return 0;
}

void metadata_deriver_want_bitmaps(MetadataDeriver *d)
{
    d->bitmaps = d->ext;
}

static int compare_inodes(Needed *a, Needed *b)
{
    return a->inode < b->inode ? -1 : a->inode > b->inode;
}

static int compare_ranges(const void *a, const void *b)
{
    const PredictedRange *x = a, *y = b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->probability > y->probability ? -1 : x->probability < y->probability;
}

/* Queries the inodes in rising order, so that libext2fs reads each block of the inode tables once.
 * Makes one range for each block of each inode. merge_blocks() joins the ranges of a
 * shared block. */
static int collect_blocks(MetadataDeriver *d, Ext2Metadata *m, PredictedRange **ret, size_t *ret_n)
{
    uint64_t size = ext2_metadata_block_size(m);
    _cleanup_free_ PredictedRange *blocks = NULL;
    _cleanup_range_set_ RangeSet ranges = {0};
    size_t n = 0, allocated = 0;

    HASH_SORT(d->needed, compare_inodes);
    for (Needed *e = d->needed; e; e = e->hh.next) {
        ranges.n = 0;
        /* An inode that cannot be read is skipped: it was deleted, or is being written. */
        if (ext2_metadata_of_inode(m, e->inode, &ranges) == -ENOMEM)
            return -ENOMEM;
        for (size_t i = 0; i < ranges.n; i++)
            for (uint64_t at = ranges.ranges[i].offset; at < range_end(&ranges.ranges[i]);
                 at += size) {
                if (grow_array(&blocks, &allocated, n + 1, sizeof(PredictedRange)) < 0)
                    return -ENOMEM;
                blocks[n++] = (PredictedRange){at, size, e->probability};
            }
    }
    *ret = TAKE_PTR(blocks);
    *ret_n = n;
    return 0;
}

/* Merges the blocks in place, and returns how many ranges remain. A block that several inodes share
 * (a block of 4096 bytes holds sixteen inodes of 256 bytes) gets the highest of their
 * probabilities. Neighbouring blocks with equal probabilities become one range. */
static size_t merge_blocks(PredictedRange *blocks, size_t n)
{
    uint64_t last_block = UINT64_MAX;
    size_t k = 0;

    if (n > 1)
        qsort(blocks, n, sizeof(PredictedRange), compare_ranges);
    for (size_t i = 0; i < n; i++) {
        PredictedRange *last = k > 0 ? &blocks[k - 1] : NULL;
        PredictedRange b = blocks[i];

        if (b.offset == last_block)
            continue;
        last_block = b.offset;
        if (last && last->offset + last->length == b.offset && last->probability == b.probability)
            last->length += b.length;
        else
            blocks[k++] = b;
    }
    return k;
}

static int derive_ext2_blocks(MetadataDeriver *d, DerivedMetadata **ret, size_t *ret_n)
{
    _cleanup_free_ PredictedRange *blocks = NULL;
    DerivedMetadata *derived;
    Ext2Metadata *m = NULL;
    _cleanup_range_set_ RangeSet bitmaps = {0};
    size_t n = 0;
    int r = ext2_metadata_open_volume(&d->v, &m);

    if (r >= 0)
        r = collect_blocks(d, m, &blocks, &n);
    if (r >= 0 && d->bitmaps)
        r = ext2_metadata_block_bitmaps(m, &bitmaps);
    ext2_metadata_free(m);
    if (r < 0)
        return r;
    n = merge_blocks(blocks, n);
    derived = calloc(n + bitmaps.n + 1, sizeof(DerivedMetadata));
    if (!derived)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        derived[i].range = blocks[i];
    for (size_t i = 0; i < bitmaps.n; i++)
        derived[n + i] = (DerivedMetadata){
                .range = {bitmaps.ranges[i].offset, bitmaps.ranges[i].length, 1},
                .passing = true,
        };
    *ret = derived;
    *ret_n = n + bitmaps.n;
    return 0;
}

static int derive_xfs(const MetadataDeriver *d, NeededMetadata *needed, DerivedMetadata **ret,
                      size_t *ret_n)
{
    _cleanup_free_ NeededDirectory *directories =
            calloc(HASH_COUNT(d->parents) + 1, sizeof(NeededDirectory));

    if (!directories)
        return -ENOMEM;
    needed->directories = directories;
    for (const Parent *p = d->parents; p; p = p->hh.next)
        directories[needed->n_directories++] = (NeededDirectory){p->path, p->needed, p->n_names};
    return derive_xfs_items(needed, ret, ret_n);
}

int metadata_deriver_finish(MetadataDeriver *d, DerivedMetadata **ret, size_t *ret_n)
{
    NeededMetadata needed = {
            .v = &d->v,
            .volume_fd = d->volume_fd,
            .inodes = d->needed,
            .names = d->names,
            .n_names = d->n_names,
            .data = d->data,
            .n_data = d->n_data,
    };

    if (!d->needed && !d->bitmaps) {
        *ret = NULL;
        *ret_n = 0;
        return 0;
    }
    if (d->ext)
        return derive_ext2_blocks(d, ret, ret_n);
    return d->btrfs ? derive_btrfs_items(&needed, ret, ret_n)
           : d->xfs ? derive_xfs(d, &needed, ret, ret_n)
                    : -EOPNOTSUPP;
}
