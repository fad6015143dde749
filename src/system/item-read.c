/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "system/item-read.h"

#include "system/capability.h"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The type of a handle of xfs that consists of the number of an inode with 64 bits and its
 * generation. File servers give such handles to their clients, so they stay valid. */
#define XFS_HANDLE_TYPE  0x81
#define XFS_HANDLE_BYTES (sizeof(uint64_t) + sizeof(uint32_t))

#define ENTRIES_BYTES 512 /* room for at least one entry of a directory */

static int read_btrfs(int dir_fd, const MetadataItem *item)
{
    struct btrfs_ioctl_search_args args = {
            .key = {
                    .tree_id = item->object == (uint64_t)BTRFS_EXTENT_CSUM_OBJECTID
                                       ? BTRFS_CSUM_TREE_OBJECTID
                                       : 0, /* the tree of the directory's subvolume */
                    .min_objectid = item->object,
                    .max_objectid = item->object,
                    .min_offset = item->offset,
                    .max_offset = item->offset,
                    .max_transid = UINT64_MAX,
                    .min_type = item->type,
                    .max_type = item->type,
                    .nr_items = 1,
            }};

    return ioctl(dir_fd, BTRFS_IOC_TREE_SEARCH, &args) < 0 ? -errno : 0;
}

/* Opens an inode of xfs; dir_fd is any directory of its filesystem. Returns a descriptor, -ESTALE
 * (the inode has another generation, or is not in use), or another negative errno. */
static int open_xfs(int dir_fd, uint64_t inode, uint32_t generation, int flags)
{
    union {
        struct file_handle h;
        char room[sizeof(struct file_handle) + XFS_HANDLE_BYTES];
    } x = {.h = {.handle_bytes = XFS_HANDLE_BYTES, .handle_type = XFS_HANDLE_TYPE}};
    int fd;

    memcpy(x.h.f_handle, &inode, sizeof(inode));
    memcpy(x.h.f_handle + sizeof(inode), &generation, sizeof(generation));
    fd = open_by_handle_at(dir_fd, &x.h, flags | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* The filesystem reads the inode, and then compares the generation, which hardly ever is 0. */
static int read_xfs_inode(int dir_fd, const MetadataItem *item)
{
    _cleanup_close_ int fd = open_xfs(dir_fd, item->object, 0, O_PATH);

    return fd < 0 && fd != -ESTALE ? fd : 0;
}

/* Lists the first entries from the item's position on. If the kernel does not know the path of the
 * directory yet, it first searches the directory above for its name. */
static int read_xfs_directory(int dir_fd, const MetadataItem *item)
{
    uint32_t generation = metadata_xfs_generation(item);
    int flags = O_RDONLY | O_DIRECTORY;
    _cleanup_close_ int fd = open_xfs(dir_fd, item->object, generation, flags | O_NOATIME);
    char entries[ENTRIES_BYTES];

    if (fd == -EPERM) /* O_NOATIME needs CAP_FOWNER for a directory of another user */
        fd = open_xfs(dir_fd, item->object, generation, flags);
    if (fd < 0)
        return fd == -ESTALE ? -ENOENT : fd;
    if (lseek(fd, metadata_xfs_position(item), SEEK_SET) < 0 ||
        syscall(SYS_getdents64, fd, entries, sizeof(entries)) < 0)
        return -errno;
    return 0;
}

int metadata_item_read(int dir_fd, const MetadataItem *item)
{
    switch (item->reader) {
    case METADATA_BTRFS_ITEM:
        return read_btrfs(dir_fd, item);
    case METADATA_XFS_INODE:
        return read_xfs_inode(dir_fd, item);
    case METADATA_XFS_DIRECTORY:
        return read_xfs_directory(dir_fd, item);
    default:
        return -EOPNOTSUPP;
    }
}

bool metadata_items_allowed(MetadataReader r)
{
    return capability_is_effective(r == METADATA_BTRFS_ITEM ? CAP_SYS_ADMIN : CAP_DAC_READ_SEARCH) >
           0;
}
