/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "system/item-read.h"

#include "system/capability.h"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A query of one inode, of xfs_fs.h of the library libhandle. */
typedef struct XfsBulkRequest {
    uint64_t *inode;
    int32_t n_entries;
    void *buffer;
    int32_t *n_found;
} XfsBulkRequest;

#define XFS_BULKSTAT_SINGLE _IOWR('X', 102, XfsBulkRequest)
#define XFS_ENTRY_MAX       256 /* more than sizeof(struct xfs_bstat) */

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

static int read_xfs(int dir_fd, const MetadataItem *item)
{
    char buffer[XFS_ENTRY_MAX];
    uint64_t inode = item->object;
    int32_t n = 0;
    XfsBulkRequest request = {&inode, 1, buffer, &n};

    if (ioctl(dir_fd, XFS_BULKSTAT_SINGLE, &request) >= 0)
        return 0;
    return errno == EINVAL ? -ENOENT : -errno; /* EINVAL: there is no such inode */
}

/* The handle of a file, and a request to open it, of xfs_fs.h. */
typedef struct XfsHandle {
    uint8_t filesystem[8]; /* the kernel takes the filesystem of the descriptor */
    uint16_t id_length;    /* of the next three */
    uint16_t reserved;
    uint32_t generation;
    uint64_t inode;
} XfsHandle;

typedef struct XfsHandleRequest {
    uint32_t fd;
    void *path;
    uint32_t open_flags;
    void *handle;
    uint32_t handle_length;
    void *answer;
    uint32_t *answer_length;
} XfsHandleRequest;

#define XFS_ENTRIES_BYTES  512 /* room for at least one entry */
#define XFS_OPEN_BY_HANDLE _IOWR('X', 107, XfsHandleRequest)

/* Lists the first entries from the item's position on, and returns when their block is in memory.
 * If the kernel does not know the path of the directory yet, it also reads the directory above. */
static int read_xfs_directory(int dir_fd, const MetadataItem *item)
{
    XfsHandle handle = {
            .id_length = sizeof(handle) - offsetof(XfsHandle, reserved),
            .generation = metadata_xfs_generation(item),
            .inode = item->object,
    };
    XfsHandleRequest request = {
            .open_flags = O_RDONLY | O_DIRECTORY | O_NOATIME,
            .handle = &handle,
            .handle_length = sizeof(handle),
    };
    char entries[XFS_ENTRIES_BYTES];
    _cleanup_close_ int fd = ioctl(dir_fd, XFS_OPEN_BY_HANDLE, &request);

    if (fd < 0)
        return errno == ESTALE ? -ENOENT : -errno;
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
        return read_xfs(dir_fd, item);
    case METADATA_XFS_DIRECTORY:
        return read_xfs_directory(dir_fd, item);
    default:
        return -EOPNOTSUPP;
    }
}

bool metadata_items_allowed(void)
{
    return capability_is_effective(CAP_SYS_ADMIN) > 0;
}
