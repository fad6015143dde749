/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the places of leaves in the trees of a btrfs on its device. Reads only the superblock, the
 * tree of chunks, the tree of roots, and nodes above the leaves, and writes nothing. The filesystem
 * may be mounted: what is found are the trees of its last commit. */

#include "base/macros.h"
#include "volume/volume.h"

typedef struct BtrfsTrees BtrfsTrees;

/* Opens the filesystem with that subvolume. The caller closes device_fd. A file or a device
 * that does not support O_DIRECT is read through its page cache, which may be older than the
 * filesystem. Returns 0, -EMEDIUMTYPE (not a btrfs, or damaged), -ENOENT (no such subvolume),
 * -ENOMEM, or another negative errno. */
int btrfs_trees_open(int device_fd, uint64_t subvolume_id, BtrfsTrees **ret);

/* Like btrfs_trees_open(), for a volume. A foreign volume (volume_is_foreign()) is refused, because
 * anyone may have made its content. Returns -EPERM (foreign), -ENXIO (the volume has no device), or
 * what btrfs_trees_open() returns. */
int btrfs_trees_open_volume(const Volume *v, BtrfsTrees **ret);

BtrfsTrees *btrfs_trees_free(BtrfsTrees *t);
DEFINE_CLEANUP(BtrfsTrees *, btrfs_trees_free);

typedef struct BtrfsKey {
    uint64_t object;
    uint8_t type;
    uint64_t offset;
} BtrfsKey;

typedef enum BtrfsTree {
    BTRFS_TREE_FILES,     /* of the subvolume */
    BTRFS_TREE_CHECKSUMS, /* of data */
    _BTRFS_TREE_MAX,
} BtrfsTree;

typedef struct BtrfsLeaf {
    uint64_t place; /* bytes on the device */
    uint64_t length;
    BtrfsKey first; /* its first item */
} BtrfsLeaf;

typedef int (*btrfs_visit_t)(void *arg, const BtrfsLeaf *leaf);

/* Calls `visit` for each leaf of the tree that has items from the key `from` to the key `to`, or
 * that would have them, in the order of keys. Leaves that are not on this device are left out, and
 * so are leaves below a node that cannot be read, and all after a million nodes and leaves. Returns
 * 0, -ENOMEM, or the error of `visit`. */
int btrfs_trees_visit(BtrfsTrees *t, BtrfsTree tree, const BtrfsKey *from, const BtrfsKey *to,
                      btrfs_visit_t visit, void *arg);

/* Returns the hash that is the offset of the key of a directory's entry (BTRFS_DIR_ITEM_KEY). */
uint64_t btrfs_name_hash(const char *name, size_t length);
