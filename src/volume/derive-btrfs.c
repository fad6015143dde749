/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Derives the metadata of btrfs: the leaves with the items. */

#include "volume/metadata-deriver-internal.h"

#include "volume/btrfs-trees.h"

#include <linux/btrfs_tree.h>

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
        return derived_add(&s->derived, &m);
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
        derived_finish(&s.derived, ret, ret_n);
    derived_done(&s.derived);
    return r;
}
