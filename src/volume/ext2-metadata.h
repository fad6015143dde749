/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the metadata of an ext2/3/4 filesystem on its device, with libext2fs. Reads the block
 * device, writes nothing, and does not disturb the mounted filesystem. */

#include "base/ranges.h"
#include "volume/volume.h"

typedef struct Ext2Metadata Ext2Metadata;

/* Opens the filesystem on that device ("/dev/…", or an image file). Returns 0, -EMEDIUMTYPE (not an
 * ext2/3/4 that libext2fs can read), -EIO, -ENOMEM, or another negative errno. */
int ext2_metadata_open(const char *device, Ext2Metadata **ret);

/* Like ext2_metadata_open(), for a volume. Opens the device by its number, because its name may
 * belong to another device now. A foreign volume (volume_is_foreign()) is refused: anyone can
 * attach a disk with damaged metadata, and headstart would parse it as root. Returns -EPERM
 * (foreign), -ENXIO (the volume has no device), or what ext2_metadata_open() returns. */
int ext2_metadata_open_volume(const Volume *v, Ext2Metadata **ret);

Ext2Metadata *ext2_metadata_free(Ext2Metadata *m);
DEFINE_CLEANUP(Ext2Metadata *, ext2_metadata_free);

/* Returns the size of a block in bytes. */
uint64_t ext2_metadata_block_size(const Ext2Metadata *m);

/* Adds to `ranges` the bytes that a lookup and an open of this inode need: its inode-table block,
 * its extent-tree or indirect blocks, its xattr block, and, for a directory, all its data blocks.
 * Returns 0, -ENOENT (no such inode, or deleted), or another negative errno. */
int ext2_metadata_of_inode(Ext2Metadata *m, uint64_t inode, RangeSet *ranges);

/* Adds to `ranges` the block bitmaps that ext4 reads ahead after a mount: those of groups with free
 * blocks, except bitmaps that were never written. Returns 0 or -ENOMEM. */
int ext2_metadata_block_bitmaps(Ext2Metadata *m, RangeSet *ranges);

/* Sets *ret to the part of `resident` (byte ranges of the device) that can be metadata which a
 * process used. Three kinds of blocks are left out:
 * - blocks that are free in the block bitmap: the filesystem does not read them, so a process has
 *   read them from the device file,
 * - block bitmaps: only an allocation needs them. Since Linux 5.8 ext4 prefetches them in the
 *   background, at a random time after the mount,
 * - blocks of the journal: a commit writes them, and only a recovery during the mount reads them.
 * All other blocks count as metadata, because the filesystem caches no file data with the device.
 * Returns 0 or a negative errno. */
int ext2_metadata_filter(Ext2Metadata *m, const RangeSet *resident, RangeSet *ret);
