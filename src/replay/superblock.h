/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the UUID from a superblock, for kernels without FS_IOC_GETFSUUID. Pure. */

#include "base/macros.h"

/* The beginning of the device that contains every superblock known here. */
#define SUPERBLOCK_READ_BYTES (65536U + 4096U)

/* `head` is the device's first `size` bytes. Writes the 16 bytes of the UUID as blkid prints them.
 * 0; -EOPNOTSUPP for a filesystem type not known here; -EBADMSG if its magic is not there. Types:
 * ext2, ext3, ext4, xfs, btrfs, f2fs; vfat's serial number stands in the last four bytes. */
int superblock_uuid(const char *fstype, const uint8_t *head, size_t size, uint8_t ret[16]);
