/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Derives the metadata of xfs: the blocks with inodes, and those with the entries of
 * directories. */

#include "volume/metadata-deriver-internal.h"

#include "base/open.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

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

/* The filesystem reads so many bytes of inodes at once, or one block. Version 5 reads as many for
 * each unit of the inode's size. */
#define XFS_CLUSTER_BYTES     8192U
#define XFS_INODE_UNIT        256U
#define XFS_GEOMETRY_VERSION5 (1U << 15)

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
    together = XFS_CLUSTER_BYTES;
    if (g->flags & XFS_GEOMETRY_VERSION5)
        together *= MAX(g->inode_size / XFS_INODE_UNIT, 1U);
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
    return ret->inode_size == 0 || ret->block_size < ret->inode_size ||
                           ret->directory_block_size == 0 || ret->group_blocks == 0
                   ? -EMEDIUMTYPE
                   : 0;
}

/* A part of a directory on the device, of xfs_fs.h. The first of an array is the question. Places
 * and lengths are in sectors. */
typedef struct XfsMapping {
    int64_t offset, place, length;
    int32_t n_allocated, n_found;
} XfsMapping;

#define XFS_MAPPINGS _IOWR('X', 38, XfsMapping)
#define XFS_SECTOR   512U
#define MAPPINGS_MAX 256U

/* getdents(2) reads at least so many bytes of a directory that follow one another on the device, or
 * a block of the directory. */
#define XFS_ENTRIES_TOGETHER (32U * 1024)

/* Lookups read the entries of a larger directory. For each directory in it that is opened by its
 * handle, the kernel searches it from its beginning. */
#define ENTRIES_BYTES_MAX (128U * 1024)

/* In the address space of a directory the blocks of its hash tree begin here. */
#define XFS_HASH_OFFSET (UINT64_C(32) << 30)

/* Adds the blocks with entries, at most as many in one item as one getdents(2) reads. */
static int add_entries(Derived *d, const NeededDirectory *x, uint32_t generation,
                       const XfsMapping *m, size_t n, uint64_t together)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t at = (uint64_t)m[i].offset * XFS_SECTOR, place = (uint64_t)m[i].place * XFS_SECTOR,
                 left = (uint64_t)m[i].length * XFS_SECTOR;

        while (m[i].place > 0 && left > 0) {
            uint64_t length = MIN(left, together);
            const DerivedMetadata item = {
                    .range = {place, length, x->needed->probability},
                    .item = metadata_xfs_directory(x->needed->inode, generation, at),
            };

            CHECK(derived_add(d, &item));
            at += length;
            place += length;
            left -= length;
        }
    }
    return 0;
}

/* Returns true if most of the blocks with entries are needed, and are not too many. Of a large
 * directory in which few names are looked up, lookups read fewer. */
static bool needs_most(const NeededDirectory *x, const XfsGeometry *g, uint64_t bytes)
{
    uint64_t n = bytes / g->directory_block_size;

    return n <= 1 || ((x->needed->listed || x->n_names >= n) && bytes <= ENTRIES_BYTES_MAX);
}

/* Finds where the entries are. Returns the number of mappings, and the generation of the inode; or
 * -ESTALE (another directory has the path now), -E2BIG, or another negative errno. */
static int find_entries(const NeededMetadata *n, const NeededDirectory *x,
                        XfsMapping m[static MAPPINGS_MAX + 1], uint32_t *ret_generation)
{
    _cleanup_close_ int path_fd = open_beneath(n->volume_fd, x->path), fd = -EBADF;
    /* FS_IOC_GETVERSION is defined for a long, and the kernel writes 32 bits. */
    uint32_t generation[sizeof(long) / sizeof(uint32_t)] = {0};
    struct stat st;
    int found = 0;

    if (path_fd < 0 || fstat(path_fd, &st) < 0 || !S_ISDIR(st.st_mode) ||
        st.st_ino != x->needed->inode)
        return -ESTALE;
    fd = fd_reopen(path_fd, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return fd;
    m[0] = (XfsMapping){.length = -1, .n_allocated = MAPPINGS_MAX + 1};
    if (ioctl(fd, FS_IOC_GETVERSION, generation) < 0 || ioctl(fd, XFS_MAPPINGS, m) < 0)
        return -errno;
    if (m[0].n_found >= (int32_t)MAPPINGS_MAX)
        return -E2BIG;
    /* Of an append-only directory the kernel also returns the blocks of the hash tree. */
    while (found < m[0].n_found && (uint64_t)m[found + 1].offset * XFS_SECTOR < XFS_HASH_OFFSET)
        found++;
    *ret_generation = generation[0];
    return found;
}

/* Adds the entries of the directory. Returns 1 if it needs nothing else to be read, 0 if lookups
 * are to read the entries, or -ENOMEM. */
static int add_directory(const NeededMetadata *n, const NeededDirectory *x, const XfsGeometry *g,
                         Derived *d)
{
    XfsMapping m[MAPPINGS_MAX + 1];
    uint32_t generation = 0;
    int found = find_entries(n, x, m, &generation);

    if (found <= 0)
        return found == 0; /* without mappings, the entries are in the inode */
    if (!needs_most(x, g, (uint64_t)(m[found].offset + m[found].length) * XFS_SECTOR))
        return 0;
    CHECK(add_entries(d, x, generation, m + 1, (size_t)found,
                      MAX(XFS_ENTRIES_TOGETHER, g->directory_block_size)));
    return 1;
}

static int compare_paths(const void *a, const void *b)
{
    const NeededDirectory *x = a, *y = b;

    return strcmp(x->path, y->path);
}

/* Returns true if replay reads all directories above with items, too. The kernel searches a
 * directory for the name of one in it that is opened by its handle. */
static bool is_reachable(const NeededMetadata *n, const bool *added, const NeededDirectory *x)
{
    char above[PATH_MAX];
    const NeededDirectory key = {.path = above}, *found;
    char *slash;

    if (strcmp(x->path, ".") == 0)
        return true;
    snprintf(above, sizeof(above), "%s", x->path);
    slash = strrchr(above, '/');
    if (slash)
        *slash = 0;
    found = bsearch(slash ? &key : &(NeededDirectory){.path = "."}, n->directories,
                    n->n_directories, sizeof(*found), compare_paths);
    return found && added[found - n->directories];
}

static int add_directories(NeededMetadata *n, const XfsGeometry *g, Derived *d)
{
    _cleanup_free_ bool *added = calloc(n->n_directories + 1, sizeof(bool));

    if (!added)
        return -ENOMEM;
    if (n->n_directories > 1)
        qsort(n->directories, n->n_directories, sizeof(*n->directories), compare_paths);
    /* In this order a directory comes before those in it. Only the mount point, with the path ".",
     * may come after some. */
    for (size_t i = 0; i < n->n_directories; i++)
        if (strcmp(n->directories[i].path, ".") == 0)
            added[i] = true;
    for (size_t i = 0; i < n->n_directories; i++) {
        int r = is_reachable(n, added, &n->directories[i])
                        ? add_directory(n, &n->directories[i], g, d)
                        : 0;

        if (r < 0)
            return r;
        added[i] = r > 0;
    }
    return 0;
}

int derive_xfs_items(NeededMetadata *n, DerivedMetadata **ret, size_t *ret_n)
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
            CHECK(derived_add(&d, &m));
    }
    CHECK(add_directories(n, &g, &d));
    derived_finish(&d, ret, ret_n);
    return 0;
}
