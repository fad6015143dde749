/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Volumes: the local block-backed filesystems of a machine and what is known of the devices below
 * them (libblkid, sysfs, through device-mapper, md and partitions). Snapshot, then decide: the
 * reader fills a VolumeTable, everyone else looks at that. */

#include "base/macros.h"
#include "base/vocabulary.h"
#include "volume/mountinfo.h"

typedef struct Volume {
    char *uuid;             /* as blkid prints it, "" if unknown */
    uint8_t uuid_bytes[16]; /* zero if unknown or not 16 bytes (vfat: serial in the last 4) */
    char *fstype;
    char *target;     /* where it is mounted, as this process sees it */
    char *mountpoint; /* the same below the recorded root: "/" if it is the root itself */
    char *subvolume;  /* btrfs: the mounted subvolume's path; "" elsewhere */
    uint64_t subvolume_id;
    uint64_t st_dev;    /* of the files, as stat(2) says (anonymous on btrfs, one a subvolume) */
    uint64_t mount_dev; /* as mountinfo says: the same but on btrfs, where subvolumes share one */
    uint64_t block_dev; /* dev_t of the block device that holds the filesystem; 0 if unknown */
    char *device;       /* kernel name: "sda2", "dm-0", "loop3" */
    char *disk;         /* the physical device at the bottom: "sda"; "" if several or unknown */
    char *scheduler;    /* active I/O scheduler of `disk`, "" if unknown */
    bool rotational;    /* queue/rotational of the disk: virtio sets it for every disk */
    bool removable;     /* the medium can be changed, says the kernel (USB sticks, card readers) */
    bool seeks_slowly;  /* set by whoever measured it (volume/seeks.h), not by the reader */
    DeviceClass device_class; /* what flags, bus and name suggest: see volume_classify() */
    uint64_t size_bytes;
    uint64_t read_ahead_kb; /* of the bdi that counts for this filesystem */
    char *read_ahead_path;  /* below /sys: queue's, or class/bdi/btrfs-N's */
} Volume;

typedef struct VolumeTable {
    Volume *volumes;
    size_t n, allocated;
    char **automounts; /* where touching what lies below would mount something (autofs), as this
                          process sees the paths */
    size_t n_automounts, allocated_automounts;
} VolumeTable;

void volume_table_done(VolumeTable *t);
#define _cleanup_volume_table_ _cleanup_(volume_table_done)

/* Reads mountinfo, sysfs and the superblocks of every local block-backed filesystem mounted at or
 * below `prefix` ("/" for all). sys_fd is a directory that stands for "/" when /proc and /sys are
 * read (AT_FDCWD: the machine itself), so that fixtures drive tests. Facts that cannot be had stay
 * empty or zero. 0, -ENOMEM, or the error of reading mountinfo. */
int volume_table_read(int sys_fd, const char *prefix, VolumeTable *ret);

/* Pure. Of different filesystems with one UUID (a copied disk, a prepared USB stick) only one keeps
 * it: one that is not removable, else the one that was mounted first. The others lose it, and with
 * it everything that is stored by UUID. volume_table_read() calls this. */
void volume_table_drop_copies(VolumeTable *t);

/* The volume with that st_dev, or NULL. */
const Volume *volume_by_dev(const VolumeTable *t, uint64_t st_dev);

/* The volume that this line of mountinfo is of, or NULL. */
const Volume *volume_by_mount(const VolumeTable *t, const Mount *m);

/* Pure: the class that bus, name and flags suggest. mmcblk: sd or emmc by `mmc_type` ("SD"/"MMC",
 * NULL unknown); nbd, rbd, network-backed: netdisk; rotational flag on a disk that is not virtual:
 * hdd; not rotational: ssd; a rotational flag on virtio or loop: unknown. */
DeviceClass volume_classify(const char *disk, bool rotational, const char *mmc_type);
