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
    METADATA_XFS_INODE,  /* by a query of an inode in the block (XFS_IOC_FSBULKSTAT_SINGLE) */
    _METADATA_READER_MAX,
} MetadataReader;

/* The item for which the filesystem is asked; all zero with METADATA_OF_DEVICE. */
typedef struct MetadataItem {
    MetadataReader reader;
    uint8_t type;    /* btrfs: the type of the key */
    uint64_t object; /* btrfs: the object of the key. xfs: the number of the inode */
    uint64_t offset; /* btrfs: the offset of the key */
} MetadataItem;
