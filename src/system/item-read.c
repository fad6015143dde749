/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "system/item-read.h"

#include "system/capability.h"

#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <sys/ioctl.h>

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

int metadata_item_read(int dir_fd, const MetadataItem *item)
{
    switch (item->reader) {
    case METADATA_BTRFS_ITEM:
        return read_btrfs(dir_fd, item);
    case METADATA_XFS_INODE:
        return read_xfs(dir_fd, item);
    default:
        return -EOPNOTSUPP;
    }
}

bool metadata_items_allowed(void)
{
    return capability_is_effective(CAP_SYS_ADMIN) > 0;
}
