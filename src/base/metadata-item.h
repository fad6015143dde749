/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Metadata that a filesystem keeps in a cache of its own: a read of the block device does not fill
 * this cache. Instead the filesystem is asked for one item of a block, and reads the block to
 * answer. */

#include "base/macros.h"

/* How a block of metadata gets into memory. */
typedef enum MetadataReader {
    METADATA_OF_DEVICE,  /* by a read of the block device (ext2, ext3, ext4) */
    METADATA_BTRFS_ITEM, /* by a search for the first item of the block (BTRFS_IOC_TREE_SEARCH) */
    METADATA_XFS_INODE,  /* by an attempt to open an inode of the block (open_by_handle_at(2)) */
    METADATA_XFS_DIRECTORY, /* by a listing of the directory that is opened by its handle, from the
                               first entry of the block on */
    _METADATA_READER_MAX,
} MetadataReader;

/* The item for which the filesystem is asked; all zero with METADATA_OF_DEVICE. */
typedef struct MetadataItem {
    MetadataReader reader;
    uint8_t type;    /* btrfs: the type of the key */
    uint64_t object; /* btrfs: the object of the key. xfs: the number of the inode */
    uint64_t offset; /* btrfs: the offset of the key. A directory of xfs: the offset for
                        getdents(2) in the upper half, the generation of the inode in the other */
} MetadataItem;

/* xfs counts offsets for getdents(2) in units of so many bytes of the directory. */
#define METADATA_XFS_ENTRY_UNIT 8U

/* Returns the item of the entries of a directory that begin `at` bytes from its start. */
static inline MetadataItem metadata_xfs_directory(uint64_t inode, uint32_t generation, uint64_t at)
{
    return (MetadataItem){METADATA_XFS_DIRECTORY, 0, inode,
                          at / METADATA_XFS_ENTRY_UNIT << 32 | generation};
}

/* Returns the offset for getdents(2), and the generation, of such an item. */
static inline uint32_t metadata_xfs_position(const MetadataItem *item)
{
    return (uint32_t)(item->offset >> 32);
}

static inline uint32_t metadata_xfs_generation(const MetadataItem *item)
{
    return (uint32_t)item->offset;
}
