/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Volumes are the local block-backed filesystems of a machine, with facts about the devices below
 * them. sysfs has these facts; the reader follows device-mapper, md and partitions down to the
 * disk. The UUIDs come from the kernel or from libblkid. volume_table_read() takes a snapshot, and
 * decisions use only the snapshot. */

#include "base/macros.h"
#include "base/vocabulary.h"
#include "device/profile.h"
#include "volume/encryption.h"
#include "volume/mountinfo.h"

typedef struct Volume {
    char *uuid;             /* as blkid prints it; "" if unknown, or not of 4 (vfat) or 16 bytes */
    uint8_t uuid_bytes[16]; /* zero if `uuid` is ""; a UUID of 4 bytes is at the end */
    char *fstype;
    char *target;     /* mount point, as this process sees it */
    char *mountpoint; /* mount point below the prefix: "/" if it is the prefix itself */
    char *subvolume;  /* btrfs: the mounted subvolume's path; "" elsewhere */
    uint64_t subvolume_id;
    uint64_t st_dev;    /* of the files, by stat(2); on btrfs anonymous, one per subvolume */
    uint64_t mount_dev; /* by mountinfo: equals st_dev, except on btrfs, where subvolumes share one
                         */
    uint64_t block_dev; /* dev_t of the block device that holds the filesystem; 0 if unknown */
    char *device;       /* kernel name: "sda2", "dm-0", "loop3" */
    char *disk;         /* the physical device at the bottom: "sda"; "" if several or unknown */
    char *scheduler;    /* active I/O scheduler of `disk`, "" if unknown */
    bool rotational;    /* queue/rotational of the disk: virtio sets it for every disk */
    bool removable;     /* a user without root's rights can attach the disk or the medium. True if
                         * sysfs says so, behind USB or an external PCI port (Thunderbolt), and for
                         * SD cards and loop devices */
    bool of_system;     /* the filesystem belongs to the system: it is the root filesystem, or on
                         * the disk of the root filesystem, or the boot mounts it by /etc/fstab */
    bool with_root;     /* the filesystem is the root filesystem, or on its disk: if that disk does
                         * not answer, the machine does not work either */
    bool seeks_slowly;  /* set from measurements (device/estimate.h), not by the reader */
    bool slow_first_reads;    /* likewise */
    DeviceClass device_class; /* by volume_classify() */
    DeviceProfile profile;    /* the reader sets the profile of the class */
    bool measured;            /* the profile comes from a complete measurement; not set by the
                                 reader */
    Encryption encryption;    /* of the devices below it */
    uint64_t size_bytes;
    uint64_t read_ahead_kb; /* of the backing device info (bdi) of this filesystem */
    char *read_ahead_path;  /* the file of that value below /sys; NULL: none */
} Volume;

typedef struct VolumeTable {
    Volume *volumes;
    size_t n, allocated;
    char **automounts; /* mount points of autofs, as this process sees them: a lookup below one may
                          mount something */
    size_t n_automounts, allocated_automounts;
} VolumeTable;

void volume_table_done(VolumeTable *t);
#define _cleanup_volume_table_ _cleanup_(volume_table_done)

/* Reads mountinfo, and the facts of every local block-backed filesystem that is mounted at or below
 * `prefix` ("/" for all). Reads also etc/fstab below `prefix`. sys_fd is the directory below which
 * /proc and /sys are read (AT_FDCWD: this machine). Any other directory is a fixture: no device and
 * no mounted filesystem is then opened. Unknown facts are empty or zero. A filesystem whose disk
 * does not answer has no UUID, and the call takes DISK_CALL_USEC longer. Returns 0, -ENOMEM, or the
 * error of reading mountinfo. */
int volume_table_read(int sys_fd, const char *prefix, VolumeTable *ret);

/* Pure. If several filesystems have one UUID (a copied disk, a prepared USB stick), one keeps it:
 * the first that is not foreign, or else the first. The others lose the UUID, so data that is
 * stored by it does not apply to them. volume_table_read() calls this. */
void volume_table_drop_copies(VolumeTable *t);

/* Returns the volume with that st_dev, or NULL. */
const Volume *volume_by_dev(const VolumeTable *t, uint64_t st_dev);

/* Returns the volume of this mount, or NULL. */
const Volume *volume_by_mount(const VolumeTable *t, const Mount *m);

/* Returns the number of the block device that a mount names as its source ("/dev/sda2",
 * "/dev/mapper/root"), or 0 if it is unknown. `sys_fd` is that of volume_table_read(). */
uint64_t volume_source_number(int sys_fd, const char *source);

/* Pure: finds the volume of `root` + `path` by comparing names with mount points. *ret_below is the
 * path below the mount point ("." for the mount point itself), and borrowed from `path`. Returns
 * NULL if no volume contains the path. Returns NULL also if a lookup would trigger an automount:
 * old kernels first mount the filesystem, and only then refuse to cross into it. */
const Volume *volume_of_path(const VolumeTable *t, const char *root, const char *path,
                             const char **ret_below);

/* Opens the mount point of a volume (its `target`) with O_PATH. Returns a descriptor, -EXDEV if
 * another filesystem than that with `st_dev` is mounted there now, or another negative errno. */
int volume_open(const char *target, uint64_t st_dev);

/* Opens `root` + `path` with O_PATH, if it is on a volume of the table. Enters no other mount: a
 * user may have mounted a filesystem that hangs. Otherwise like open_beneath() (base/open.h).
 * Returns a descriptor or a negative errno: -EXDEV if no volume of the table contains the path, or
 * another mount hides it. */
int volume_open_path(const VolumeTable *t, const char *root, const char *path);

/* Reads the encryption of the place where `path` is or will be: that of `path` itself or, if it
 * does not exist, that of the nearest directory above it. Unknown places count as not encrypted.
 * Returns 0 or -ENOMEM. */
int volume_read_encryption_of_place(const VolumeTable *t, const char *path, Encryption *ret);

/* Pure: returns true if the filesystem is on a removable disk and does not belong to the system.
 * Any user may have written its content. */
bool volume_is_foreign(const Volume *v);

/* Pure: returns the first argument of disk_call() (system/disk-call.h) for accesses to this
 * filesystem: its st_dev, or 0 if it is on the disk of the root filesystem. */
uint64_t volume_call_dev(const Volume *v);

/* Returns true for ext2, ext3 and ext4. The kernel caches their metadata with the block device;
 * other filesystems keep metadata in caches of their own. */
bool volume_is_ext(const Volume *v);

/* Returns true for btrfs and xfs, whose metadata headstart asks for item by item
 * (system/item-read.h). */
bool volume_has_items(const Volume *v);

/* Pure: sets the class, and the profile to the typical one of the class. */
void volume_set_class(Volume *v, DeviceClass c);

/* Pure: determines the class by the disk's name, rotational flag and type. mmcblk: emmc if
 * `mmc_type` is "MMC", else sd. nbd, rbd and drbd: netdisk. virtio, xen or loop devices with the
 * rotational flag: unknown, because their flag may be set although the storage below does not
 * rotate. Other disks: hdd if rotational, else ssd. No disk (""): unknown. `mmc_type` (of
 * device/type in sysfs) may be NULL. */
DeviceClass volume_classify(const char *disk, bool rotational, const char *mmc_type);
