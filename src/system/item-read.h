/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "base/metadata-item.h"

/* Asks the filesystem of the directory dir_fd for the item, and waits until the block with the item
 * is in memory. On btrfs the item is in the tree of the directory's subvolume, or in the tree of
 * checksums if it is a checksum. If the item does not exist any more, the filesystem reads the
 * block in which it would be. Returns 0, -EPERM (the capability is missing), -ENOENT (no such
 * directory), or another negative errno. An inode of xfs that cannot be read counts as read,
 * because the kernel returns the same error for it and for one that has another generation. */
int metadata_item_read(int dir_fd, const MetadataItem *item);

/* Returns true if this process may call metadata_item_read() for items of that kind. The items of
 * btrfs need CAP_SYS_ADMIN, those of xfs CAP_DAC_READ_SEARCH. */
bool metadata_items_allowed(MetadataReader r);
