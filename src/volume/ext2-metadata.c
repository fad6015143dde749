/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "volume/ext2-metadata.h"

#include "base/open.h"
#include "device/block-device.h"

#include <ext2fs/ext2fs.h>
#include <string.h>

struct Ext2Metadata {
    ext2_filsys fs;
    uint64_t block_size;
    uint8_t *bitmap; /* the block bitmap of bitmap_group; NULL until one is loaded */
    dgrp_t bitmap_group;
};

/* Translates an error of libext2fs to a negative errno. Errors of the library without a counterpart
 * become -EIO. */
static int translate(errcode_t e)
{
    switch (e) {
    case 0:
        return 0;
    case EXT2_ET_BAD_MAGIC:
    case EXT2_ET_SHORT_READ:
    case EXT2_ET_UNSUPP_FEATURE:
    case EXT2_ET_RO_UNSUPP_FEATURE:
    case EXT2_ET_CORRUPT_SUPERBLOCK:
        return -EMEDIUMTYPE;
    case EXT2_ET_NO_MEMORY:
        return -ENOMEM;
    default:
        return e > 0 && e < 4096 ? -(int)e : -EIO;
    }
}

int ext2_metadata_open(const char *device, Ext2Metadata **ret)
{
    Ext2Metadata *m;
    errcode_t e;

    m = calloc(1, sizeof(*m));
    if (!m)
        return -ENOMEM;
    /* The filesystem is mounted and changes while it is read, so wrong checksums are expected. The
     * result is only a hint. */
    e = ext2fs_open(device,
                    EXT2_FLAG_64BITS | EXT2_FLAG_IGNORE_CSUM_ERRORS | EXT2_FLAG_SOFTSUPP_FEATURES,
                    0, 0, unix_io_manager, &m->fs);
    if (e) {
        free(m);
        return translate(e);
    }
    m->block_size = m->fs->blocksize;
    *ret = m;
    return 0;
}

int ext2_metadata_open_volume(const Volume *v, Ext2Metadata **ret)
{
    _cleanup_close_ int fd = -EBADF;
    char device[FD_PROC_PATH_MAX];

    if (volume_is_foreign(v))
        return -EPERM;
    fd = block_device_open(v->block_dev);
    return fd < 0 ? fd : ext2_metadata_open(fd_proc_path(device, fd), ret);
}

Ext2Metadata *ext2_metadata_free(Ext2Metadata *m)
{
    if (!m)
        return NULL;
    ext2fs_close_free(&m->fs);
    free(m->bitmap);
    free(m);
    return NULL;
}

uint64_t ext2_metadata_block_size(const Ext2Metadata *m)
{
    return m->block_size;
}

static int add_blocks(Ext2Metadata *m, RangeSet *s, blk64_t block, uint64_t n)
{
    blk64_t total = ext2fs_blocks_count(m->fs->super);

    if (block == 0 && m->fs->super->s_first_data_block > 0 && n == 1)
        return 0;
    if (block >= total)
        return 0;
    return range_set_insert(s, block * m->block_size, MIN(n, total - block) * m->block_size);
}

/* Returns the block of the inode table that contains the inode, or 0. */
static blk64_t inode_table_block(ext2_filsys fs, ext2_ino_t ino)
{
    dgrp_t group = ext2fs_group_of_ino(fs, ino);
    uint64_t at;

    if (group >= fs->group_desc_count)
        return 0;
    at = (uint64_t)((ino - 1) % EXT2_INODES_PER_GROUP(fs->super)) * EXT2_INODE_SIZE(fs->super);
    return ext2fs_inode_table_loc(fs, group) + at / fs->blocksize;
}

typedef struct Walk {
    Ext2Metadata *m;
    RangeSet *ranges;
    bool data_too; /* true for a directory: its data blocks are metadata */
    blk64_t left;  /* so many blocks follow at most; a damaged block map can contain a circle */
    int r;
} Walk;

static Walk walk_of(Ext2Metadata *m, RangeSet *ranges, bool data_too)
{
    return (Walk){.m = m,
                  .ranges = ranges,
                  .data_too = data_too,
                  .left = ext2fs_blocks_count(m->fs->super)};
}

static int walk_block(ext2_filsys fs, blk64_t *block, e2_blkcnt_t index, blk64_t ref_block,
                      int ref_offset, void *data)
{
    Walk *w = data;

    if (w->left-- == 0)
        return BLOCK_ABORT;
    /* index < 0: an indirect or extent-tree block */
    if (index < 0 || w->data_too)
        w->r = add_blocks(w->m, w->ranges, *block, 1);
    return w->r < 0 ? BLOCK_ABORT : 0;
}

/* Adds the blocks of the extent tree below the inode. If the tree has one level, the inode contains
 * the numbers of its blocks, so these blocks are not read. In a deeper tree, libext2fs reads the
 * blocks of all levels. */
static int add_extent_tree(Ext2Metadata *m, ext2_ino_t ino, struct ext2_inode *inode,
                           RangeSet *ranges)
{
    const struct ext3_extent_header *h = (const void *)inode->i_block;
    uint16_t depth = ext2fs_le16_to_cpu(h->eh_depth), n = ext2fs_le16_to_cpu(h->eh_entries);
    ext2_extent_handle_t handle;
    struct ext2fs_extent extent;
    errcode_t e;
    int r = 0;

    if (ext2fs_le16_to_cpu(h->eh_magic) != EXT3_EXT_MAGIC)
        return -EIO;
    if (depth <= 1) {
        const struct ext3_extent_idx *x = (const void *)(h + 1);

        n = MIN(n, (uint16_t)((sizeof(inode->i_block) - sizeof(*h)) / sizeof(*x)));
        for (uint16_t i = 0; depth == 1 && i < n && r >= 0; i++)
            r = add_blocks(m, ranges,
                           ext2fs_le32_to_cpu(x[i].ei_leaf) |
                                   (blk64_t)ext2fs_le16_to_cpu(x[i].ei_leaf_hi) << 32,
                           1);
        return r;
    }
    e = ext2fs_extent_open2(m->fs, ino, inode, &handle);
    if (e)
        return translate(e);
    for (int op = EXT2_EXTENT_ROOT; r >= 0; op = EXT2_EXTENT_NEXT) {
        e = ext2fs_extent_get(handle, op, &extent);
        if (e)
            break;
        if (!(extent.e_flags & (EXT2_EXTENT_FLAGS_LEAF | EXT2_EXTENT_FLAGS_SECOND_VISIT)))
            r = add_blocks(m, ranges, extent.e_pblk, 1);
    }
    ext2fs_extent_free(handle);
    return r < 0 ? r : e == EXT2_ET_EXTENT_NO_NEXT ? 0 : translate(e);
}

int ext2_metadata_of_inode(Ext2Metadata *m, uint64_t inode, RangeSet *ranges)
{
    ext2_filsys fs = m->fs;
    struct ext2_inode i;
    errcode_t e;
    blk64_t acl;
    Walk w;
    int r;

    if (inode == 0 || inode > fs->super->s_inodes_count)
        return -ENOENT;
    e = ext2fs_read_inode(fs, (ext2_ino_t)inode, &i);
    if (e)
        return translate(e);
    if (i.i_links_count == 0 || i.i_mode == 0)
        return -ENOENT;
    r = add_blocks(m, ranges, inode_table_block(fs, (ext2_ino_t)inode), 1);
    if (r < 0)
        return r;
    acl = ext2fs_file_acl_block(fs, &i);
    if (acl) {
        r = add_blocks(m, ranges, acl, 1);
        if (r < 0)
            return r;
    }

    w = walk_of(m, ranges, LINUX_S_ISDIR(i.i_mode));
    if (!ext2fs_inode_has_valid_blocks2(fs, &i))
        return 0; /* inline data or a fast symlink: everything is in the inode */
    if (i.i_flags & EXT4_EXTENTS_FL) {
        r = add_extent_tree(m, (ext2_ino_t)inode, &i, ranges);
        if (r < 0 || !w.data_too)
            return r;
    }
    e = ext2fs_block_iterate3(fs, (ext2_ino_t)inode, BLOCK_FLAG_READ_ONLY, NULL, walk_block, &w);
    if (w.r < 0)
        return w.r;
    return translate(e);
}

/* Loads the block bitmap of one group, unless it is loaded already. A large disk has thousands of
 * groups, so only one bitmap is kept. If the bitmap of a group was never written, only the group's
 * own metadata is in use. */
static int load_bitmap(Ext2Metadata *m, dgrp_t group)
{
    ext2_filsys fs = m->fs;
    errcode_t e;

    if (m->bitmap && m->bitmap_group == group)
        return 0;
    if (!m->bitmap) {
        m->bitmap = malloc(m->block_size);
        if (!m->bitmap)
            return -ENOMEM;
    }
    m->bitmap_group = group;
    if (ext2fs_has_group_desc_csum(fs) && ext2fs_bg_flags_test(fs, group, EXT2_BG_BLOCK_UNINIT)) {
        /* Resident blocks of such a group can only belong to its own tables, so all of them count
         * as in use. */
        memset(m->bitmap, 0xff, m->block_size);
        return 0;
    }
    e = io_channel_read_blk64(fs->io, ext2fs_block_bitmap_loc(fs, group), 1, m->bitmap);
    if (e) /* the buffer no longer holds the bitmap of any group */
        m->bitmap_group = fs->group_desc_count;
    return translate(e);
}

/* Returns true if ext4 reads the block bitmap of the group ahead: the group has free blocks, and
 * its bitmap was written. */
static bool is_prefetched(ext2_filsys fs, dgrp_t group)
{
    return ext2fs_bg_free_blocks_count(fs, group) > 0 &&
           !(ext2fs_has_group_desc_csum(fs) &&
             ext2fs_bg_flags_test(fs, group, EXT2_BG_BLOCK_UNINIT));
}

static int block_bitmaps(Ext2Metadata *m, bool prefetched_only, RangeSet *s)
{
    ext2_filsys fs = m->fs;
    int r = 0;

    for (dgrp_t g = 0; r >= 0 && g < fs->group_desc_count; g++)
        if (!prefetched_only || is_prefetched(fs, g))
            r = add_blocks(m, s, ext2fs_block_bitmap_loc(fs, g), 1);
    return r;
}

int ext2_metadata_block_bitmaps(Ext2Metadata *m, RangeSet *ranges)
{
    return block_bitmaps(m, true, ranges);
}

/* Adds the blocks of the journal, if it is a file of the filesystem. A journal that cannot be read
 * does not hide the rest. */
static int journal_blocks(Ext2Metadata *m, RangeSet *s)
{
    ext2_filsys fs = m->fs;
    Walk w = walk_of(m, s, true);

    if (ext2fs_has_feature_journal(fs->super) && fs->super->s_journal_inum > 0)
        (void)ext2fs_block_iterate3(fs, fs->super->s_journal_inum,
                                    BLOCK_FLAG_READ_ONLY | BLOCK_FLAG_DATA_ONLY, NULL, walk_block,
                                    &w);
    return w.r;
}

int ext2_metadata_filter(Ext2Metadata *m, const RangeSet *resident, RangeSet *ret)
{
    ext2_filsys fs = m->fs;
    _cleanup_range_set_ RangeSet kept = {0}, unread = {0};
    blk64_t total = ext2fs_blocks_count(fs->super);
    uint64_t ratio = (uint64_t)EXT2FS_CLUSTER_RATIO(fs);
    int r;

    for (size_t i = 0; i < resident->n; i++) {
        const Range *x = &resident->ranges[i];
        uint64_t first = x->offset / m->block_size;
        uint64_t end = MIN(DIV_ROUND_UP(range_end(x), m->block_size), total);

        for (uint64_t b = first; b < end; b++) {
            uint64_t start = MAX(b * m->block_size, x->offset), bit;

            if (b >= fs->super->s_first_data_block) {
                r = load_bitmap(m, ext2fs_group_of_blk2(fs, b));
                if (r < 0)
                    return r;
                bit = (b - ext2fs_group_first_block2(fs, m->bitmap_group)) / ratio;
                if (bit / 8 >= m->block_size || !(m->bitmap[bit / 8] & 1U << bit % 8))
                    continue;
            }
            r = range_set_insert(&kept, start, MIN((b + 1) * m->block_size, range_end(x)) - start);
            if (r < 0)
                return r;
        }
    }
    r = block_bitmaps(m, false, &unread);
    if (r >= 0)
        r = journal_blocks(m, &unread);
    return r < 0 ? r : range_set_subtract(&kept, &unread, ret);
}
