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

/* getdents(2) reads at least so many bytes of a directory that follow one another on the device. */
#define XFS_ENTRIES_TOGETHER (32U * 1024)

/* Adds the blocks with entries, at most as many in one item as one getdents(2) reads. */
static int add_entries(Derived *d, const NeededDirectory *x, uint32_t generation,
                       const XfsMapping *m, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t at = (uint64_t)m[i].offset * XFS_SECTOR, place = (uint64_t)m[i].place * XFS_SECTOR,
                 left = (uint64_t)m[i].length * XFS_SECTOR;

        while (m[i].place > 0 && left > 0) {
            uint64_t length = MIN(left, (uint64_t)XFS_ENTRIES_TOGETHER);
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

/* Returns true if most of the blocks with entries are needed. Of a large directory in which few
 * names are looked up, lookups read fewer. */
static bool needs_most(const NeededDirectory *x, const XfsGeometry *g, const XfsMapping *last)
{
    uint64_t n = (uint64_t)(last->offset + last->length) * XFS_SECTOR / g->directory_block_size;

    return n <= 1 || x->needed->listed || x->n_names >= n;
}

/* Adds the entries of the directory. Returns 1 if it needs nothing else to be read, 0 if lookups
 * are to read the entries, or -ENOMEM. */
static int add_directory(const NeededMetadata *n, const NeededDirectory *x, const XfsGeometry *g,
                         Derived *d)
{
    XfsMapping m[MAPPINGS_MAX + 1] = {{.length = -1, .n_allocated = ELEMENTSOF(m)}};
    _cleanup_close_ int path_fd = open_beneath(n->volume_fd, x->path), fd = -EBADF;
    long generation = 0; /* the type of FS_IOC_GETVERSION; the kernel writes an int */
    struct stat st;
    size_t n_mappings;

    if (path_fd < 0 || fstat(path_fd, &st) < 0 || !S_ISDIR(st.st_mode) ||
        st.st_ino != x->needed->inode)
        return 0;
    fd = fd_reopen(path_fd, O_RDONLY | O_DIRECTORY);
    if (fd < 0 || ioctl(fd, FS_IOC_GETVERSION, &generation) < 0 || ioctl(fd, XFS_MAPPINGS, m) < 0)
        return 0;
    n_mappings = (size_t)MAX(m[0].n_found, 0);
    if (n_mappings == 0)
        return 1; /* the entries are in the inode */
    if (n_mappings >= MAPPINGS_MAX || !needs_most(x, g, &m[n_mappings]))
        return 0;
    CHECK(add_entries(d, x, (uint32_t)generation, m + 1, n_mappings));
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
