/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the UUID from a superblock, for kernels without FS_IOC_GETFSUUID. Pure. */

#include "base/macros.h"

/* The size of the device's first part that contains every superblock known here. */
#define SUPERBLOCK_READ_BYTES (65536U + 4096U)

/* Returns true if superblock_uuid() knows the filesystem type. */
bool superblock_is_known(const char *fstype);

/* Reads the UUID from `head`, the first `size` bytes of the device, and writes its 16 bytes in the
 * order in which blkid prints them. Known types are ext2, ext3, ext4, xfs, btrfs, f2fs, erofs, jfs,
 * nilfs2, reiserfs, vfat and exfat; the serial number of vfat and exfat is in the last four bytes.
 * Returns 0; -EOPNOTSUPP for another filesystem type; -EBADMSG if the magic number is missing. */
int superblock_uuid(const char *fstype, const uint8_t *head, size_t size, uint8_t ret[16]);
