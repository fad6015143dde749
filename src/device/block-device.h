/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Block devices by number, through sysfs; the UUID of a mounted filesystem. Needs only libc:
 * headstart-replay uses it too. `sys_fd` is a directory that replaces "/" (AT_FDCWD: "/"
 * itself). */

#include "base/macros.h"

/* Finds the device's name below /dev ("sda2", "dm-0", "cciss/c0d0"); the caller frees *ret. Returns
 * 0, -ENODATA (the kernel gives none), or the error of reading sysfs. */
int block_device_name(int sys_fd, uint64_t dev, char **ret);

/* Returns the number of the device with that name in sysfs ("sda2", "cciss!c0d0"), or 0. */
uint64_t block_device_number(int sys_fd, const char *sysfs_name);

#define BLOCK_DEVICE_LINK_MAX 4096 /* enough for block_device_link() */

/* Writes to buf the target of the link /sys/class/block/NAME, such as
 * "../../devices/pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0/host6/target6:0:0/6:0:0:0/block/sdb".
 * Returns 0, -ENAMETOOLONG (buf is too small), or another negative errno. */
int block_device_link(int sys_fd, const char *sysfs_name, char *buf, size_t size);

/* Converts the name of a device to its name in sysfs, in place: each "/" becomes "!". */
void block_device_sysfs_name(char *name);

/* Opens the device for reading by its name below /dev, if that is a block device with this number.
 * Returns a descriptor (O_CLOEXEC), -ENXIO (dev is 0, or the name belongs to another device), or a
 * negative errno. */
int block_device_open(uint64_t dev);

/* The bottom of a stack of devices. */
typedef struct BlockDisk {
    char *name;      /* in sysfs: the lowest device of the stack */
    bool several;    /* `name` lies on several devices (a RAID): they are not followed */
    bool mapped;     /* a device of device-mapper, or another stacked device, lies above `name` */
    uint64_t offset; /* bytes from the beginning of `name` to the device: the sum of the offsets of
                      * partitions. The offset of a device-mapper volume counts as 0 */
} BlockDisk;

void block_disk_done(BlockDisk *d);
#define _cleanup_block_disk_ _cleanup_(block_disk_done)

/* Follows the device down through partitions and stacked devices (dm, md), at most 16 levels.
 * Returns 0, -ENOMEM, or the error of block_device_name(). */
int block_device_find_disk(int sys_fd, uint64_t dev, BlockDisk *ret);

/* Calls `visit` for the device and for every device below it, from the top down, with their names
 * in sysfs. If there are several devices directly below a device, only the one whose name sorts
 * first is followed. Returns 0, the error of `visit`, -ENOMEM, or the error of
 * block_device_name(). */
typedef int (*block_device_visit_t)(void *arg, int sys_fd, const char *sysfs_name);
int block_device_visit_stack(int sys_fd, uint64_t dev, block_device_visit_t visit, void *arg);

/* Makes a text that identifies the disk below the device (if there are several disks, the one whose
 * name sorts first). The text contains WWID, serial number, model and size as far as sysfs has
 * them, and the name if there is neither a WWID nor a serial number. It is printable ASCII. The
 * caller frees *ret. Returns 0, -ENOMEM, or the error of block_device_name(). */
int block_device_identity(int sys_fd, uint64_t dev, char **ret);

/* Like block_device_identity(), but the text has no names of devices, which may change from boot to
 * boot. One machine has the same text in each boot. Two disks without WWID and serial number may
 * have the same text. If a device lies on several disks, the text describes the device. The caller
 * frees *ret. Returns 0, -ENODATA (sysfs has no such fact), -ENOMEM, or the error of
 * block_device_name(). */
int block_device_hardware(int sys_fd, uint64_t dev, char **ret);

/* Reads the UUID that the kernel reports for the mounted filesystem on which fd (not O_PATH) lies
 * (BTRFS_IOC_FS_INFO; of other filesystems FS_IOC_GETFSUUID, Linux 6.9). Returns 0, -ENOTTY or
 * -EOPNOTSUPP (the kernel or the filesystem does not support it), -EBADMSG (not 16 bytes), or
 * another negative errno. */
int filesystem_uuid(int fd, uint8_t ret[static 16]);
