/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Derives the metadata of filesystems that are asked for items: btrfs and xfs. */

#include "volume/metadata-deriver-internal.h"

#include "base/open.h"
#include "volume/btrfs-trees.h"

#include <fcntl.h>
#include <linux/btrfs_tree.h>
#include <sys/ioctl.h>

typedef struct Derived {
    DerivedMetadata *items;
    size_t n, allocated;
} Derived;

static void derived_done(Derived *d)
{
    free(d->items);
}

static int add(Derived *d, const DerivedMetadata *m)
{
    if (grow_array(&d->items, &d->allocated, d->n + 1, sizeof(*m)) < 0)
        return -ENOMEM;
    d->items[d->n++] = *m;
    return 0;
}

static int compare(const void *a, const void *b)
{
    const DerivedMetadata *x = a, *y = b;

    if (x->range.offset != y->range.offset)
        return x->range.offset < y->range.offset ? -1 : 1;
    return x->range.probability > y->range.probability
                   ? -1
                   : x->range.probability < y->range.probability;
}

/* Sorts the blocks. Of each block one item remains, with the highest probability. */
static void finish(Derived *d, DerivedMetadata **ret, size_t *ret_n)
{
    size_t n = 0;

    if (d->n > 1)
        qsort(d->items, d->n, sizeof(*d->items), compare);
    for (size_t i = 0; i < d->n; i++)
        if (n == 0 ||
            d->items[n - 1].range.offset + d->items[n - 1].range.length <= d->items[i].range.offset)
            d->items[n++] = d->items[i];
    *ret = TAKE_PTR(d->items);
    *ret_n = n;
}

/* --- btrfs ------------------------------------------------------------------------------------ */

typedef struct LeafSum {
    Derived derived;
    BtrfsTree tree; /* this field and the next: of the keys that are visited now */
    double probability;
} LeafSum;

static int add_leaf(void *arg, const BtrfsLeaf *l)
{
    LeafSum *s = arg;
    const DerivedMetadata m = {
            .range = {l->place, l->length, s->probability},
            .item = {METADATA_BTRFS_ITEM, l->first.type, l->first.object, l->first.offset},
            .shared = s->tree == BTRFS_TREE_CHECKSUMS,
    };
    DerivedMetadata *last = s->derived.n > 0 ? &s->derived.items[s->derived.n - 1] : NULL;

    /* The keys of one file are often in one leaf. */
    if (!last || last->range.offset != l->place)
        return add(&s->derived, &m);
    last->range.probability = MAX(last->range.probability, s->probability);
    return 0;
}

static int add_keys(BtrfsTrees *t, BtrfsTree tree, BtrfsKey from, BtrfsKey to, double probability,
                    LeafSum *s)
{
    s->tree = tree;
    s->probability = probability;
    return btrfs_trees_visit(t, tree, &from, &to, add_leaf, s);
}

/* Adds the leaves with the inode, its names and attributes, and with the entries of a directory
 * that is listed. */
static int add_inode(BtrfsTrees *t, const Needed *i, LeafSum *s)
{
    uint64_t n = i->inode;

    CHECK(add_keys(t, BTRFS_TREE_FILES, (BtrfsKey){n, BTRFS_INODE_ITEM_KEY, 0},
                   (BtrfsKey){n, BTRFS_XATTR_ITEM_KEY, UINT64_MAX}, i->probability, s));
    if (!i->listed)
        return 0;
    return add_keys(t, BTRFS_TREE_FILES, (BtrfsKey){n, BTRFS_DIR_INDEX_KEY, 0},
                    (BtrfsKey){n, BTRFS_DIR_INDEX_KEY, UINT64_MAX}, i->probability, s);
}

static int add_name(BtrfsTrees *t, const NeededName *i, LeafSum *s)
{
    const BtrfsKey key = {i->directory, BTRFS_DIR_ITEM_KEY, i->hash};

    return add_keys(t, BTRFS_TREE_FILES, key, key, i->probability, s);
}

/* Adds the leaves with the extents of the data, and with its checksums. */
static int add_data(BtrfsTrees *t, const NeededData *i, LeafSum *s)
{
    const uint64_t sums = (uint64_t)BTRFS_EXTENT_CSUM_OBJECTID;
    const PredictedRange *r = &i->range;

    CHECK(add_keys(t, BTRFS_TREE_FILES, (BtrfsKey){i->inode, BTRFS_EXTENT_DATA_KEY, r->offset},
                   (BtrfsKey){i->inode, BTRFS_EXTENT_DATA_KEY, r->offset + r->length - 1},
                   r->probability, s));
    return add_keys(t, BTRFS_TREE_CHECKSUMS, (BtrfsKey){sums, BTRFS_EXTENT_CSUM_KEY, i->place},
                    (BtrfsKey){sums, BTRFS_EXTENT_CSUM_KEY, i->place + r->length - 1},
                    r->probability, s);
}

int derive_btrfs_items(const NeededMetadata *n, DerivedMetadata **ret, size_t *ret_n)
{
    _cleanup_(btrfs_trees_freep) BtrfsTrees *t = NULL;
    LeafSum s = {0};
    int r = btrfs_trees_open_volume(n->v, &t);

    for (const Needed *i = n->inodes; r >= 0 && i; i = i->hh.next)
        r = add_inode(t, i, &s);
    for (size_t i = 0; r >= 0 && i < n->n_names; i++)
        r = add_name(t, &n->names[i], &s);
    for (size_t i = 0; r >= 0 && i < n->n_data; i++)
        r = add_data(t, &n->data[i], &s);
    if (r >= 0)
        finish(&s.derived, ret, ret_n);
    derived_done(&s.derived);
    return r;
}

/* --- xfs -------------------------------------------------------------------------------------- */

/* The geometry of a filesystem, of xfs_fs.h. */
typedef struct XfsGeometry {
    uint32_t block_size, rt_extent_size, group_blocks, n_groups, log_blocks, sector_size,
            inode_size, inode_percent;
    uint64_t n_blocks, n_rt_blocks, n_rt_extents, log_start;
    uint8_t uuid[16];
    uint32_t stripe_unit, stripe_width;
    int32_t version;
    uint32_t flags, log_sector_size, rt_sector_size, directory_block_size;
} XfsGeometry;

#define XFS_GEOMETRY _IOR('X', 100, XfsGeometry)

/* The filesystem reads so many inodes at once, or those of one block. */
#define XFS_INODES_TOGETHER 32U

static unsigned log2_up(uint64_t n)
{
    unsigned bits = 0;

    while (bits < 63 && (UINT64_C(1) << bits) < n)
        bits++;
    return bits;
}

/* Finds the bytes of the device that the filesystem reads for the inode. The bits of its number are
 * those of its allocation group, of its block in the group, and of its place in the block. Returns
 * false if the inode cannot be on this filesystem. */
static bool place_inode(const XfsGeometry *g, uint64_t inode, PredictedRange *ret)
{
    uint64_t per_block = g->block_size / g->inode_size, together, at;
    unsigned block_bits = log2_up(g->group_blocks), inode_bits = log2_up(per_block);
    uint64_t group = inode >> (block_bits + inode_bits);
    uint64_t block = (inode >> inode_bits) & ((UINT64_C(1) << block_bits) - 1);

    if (group >= g->n_groups || block >= g->group_blocks)
        return false;
    together = (uint64_t)XFS_INODES_TOGETHER * g->inode_size;
    together = MAX(together, (uint64_t)g->block_size);
    at = ALIGN_DOWN(block * g->block_size, together);
    ret->offset = group * g->group_blocks * g->block_size + at;
    ret->length = MIN(together, (uint64_t)g->group_blocks * g->block_size - at);
    return true;
}

static int read_geometry(int volume_fd, XfsGeometry *ret)
{
    _cleanup_close_ int fd = fd_reopen(volume_fd, O_RDONLY | O_DIRECTORY);

    if (fd < 0)
        return fd;
    if (ioctl(fd, XFS_GEOMETRY, ret) < 0)
        return -errno;
    return ret->inode_size == 0 || ret->block_size < ret->inode_size || ret->group_blocks == 0
                   ? -EMEDIUMTYPE
                   : 0;
}

int derive_xfs_items(const NeededMetadata *n, DerivedMetadata **ret, size_t *ret_n)
{
    _cleanup_(derived_done) Derived d = {0};
    XfsGeometry g;

    CHECK(read_geometry(n->volume_fd, &g));
    for (const Needed *i = n->inodes; i; i = i->hh.next) {
        DerivedMetadata m = {
                .range.probability = i->probability,
                .item = {.reader = METADATA_XFS_INODE, .object = i->inode},
        };

        if (place_inode(&g, i->inode, &m.range))
            CHECK(add(&d, &m));
    }
    finish(&d, ret, ret_n);
    return 0;
}
