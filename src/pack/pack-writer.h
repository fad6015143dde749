/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A plan in the host's byte order, and the writer that makes a pack of it. Pure. The writer does
 * not sort. The planner decides the order, and the writer refuses content that is not in the order
 * that pack.h requires. */

#include "base/ranges.h"
#include "pack/pack.h"

typedef struct PackContentFile {
    char *path; /* relative to the mount point; "." is the mount point itself */
    bool directory;
    uint64_t inode;
    uint64_t size_bytes;
    int64_t mtime_nsec;
    int64_t ctime_nsec;
    usec_t need; /* mean instant of first use since the stage's start; USEC_INFINITY: unknown */
    double probability;
    bool written_in_place; /* PACK_FILE_VOLATILE */
    bool touched;          /* PACK_FILE_TOUCHED */
    bool symlink;          /* PACK_FILE_SYMLINK */
    bool looked_up;        /* PACK_FILE_LOOKED_UP */
} PackContentFile;

typedef struct PackContentMetadata {
    uint64_t offset; /* bytes on the block device */
    uint64_t length;
    double probability;
    MetadataItem item;
} PackContentMetadata;

typedef struct PackContentVolume {
    uint8_t uuid[16];
    uint64_t subvolume_id;
    uint64_t device_size;
    char *fstype;
    char *mountpoint;
    DeviceClass device_class;
    uint32_t flags;       /* PackVolumeFlags */
    uint64_t sweep_start; /* pack_sweep_start(): at this place or after it */
    PackContentMetadata *metadata;
    size_t n_metadata, allocated_metadata;
    PackContentFile *files;
    size_t n_files, allocated_files;
    PlacedRange *data; /* `file` is an index into `files`; disk, physical_end and run are ignored */
    size_t n_data, allocated_data;
} PackContentVolume;

typedef struct PackContent {
    Stage stage;
    Policy policy;
    uint32_t control_interval;
    uint64_t salt;
    usec_t deadline_usec;
    usec_t hold_usec; /* 0: until the sweep is over, at most until the deadline */
    usec_t bin_usec;  /* 0: the policy decides; USEC_INFINITY: one bin */
    PolicyReason reason;
    usec_t predicted_usec[_POLICY_MAX]; /* 0: not known */
    bool predicts_waits; /* `predicted_usec` is only the wait for the disks, because it is not known
                            how long the stage computes. The pack then has no predicted times. */
    usec_t created_realtime;
    PackContentVolume *volumes;
    size_t n_volumes, allocated_volumes;
} PackContent;

/* Frees the struct and everything in it. */
PackContent *pack_content_free(PackContent *c);
DEFINE_CLEANUP(PackContent *, pack_content_free);
#define _cleanup_pack_content_ _cleanup_(pack_content_freep)

/* Returns the size of the pack in bytes. */
uint64_t pack_content_size(const PackContent *c);

/* Writes the content in the layout of pack.h and checks the result with pack_open(). The caller
 * frees *ret, which is 8-aligned and has *ret_size bytes. Returns 0, -EINVAL (the content is not in
 * order or breaks a rule), -E2BIG (over a limit), or -ENOMEM; outputs are untouched on failure. */
int pack_write(const PackContent *c, void **ret, size_t *ret_size);
