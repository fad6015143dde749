/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A plan in the host's form, ready to be written as a pack. Pure. The writer sorts nothing: the
 * order is the planner's decision, and what is not in the order pack.h demands is refused. */

#include "pack/pack.h"

typedef struct PackContentMetadata {
    uint64_t offset; /* bytes on the device */
    uint64_t length;
    uint32_t need_msec; /* PACK_NEED_UNKNOWN: not known */
    double probability;
} PackContentMetadata;

typedef struct PackContentFile {
    char *path; /* relative to the mount point; "." is the mount point itself */
    bool directory;
    uint64_t inode;
    uint64_t size_bytes;
    int64_t mtime_nsec;
    int64_t ctime_nsec;
    uint32_t need_msec;
    double probability;
    bool written_in_place; /* PACK_FILE_VOLATILE */
} PackContentFile;

typedef struct PackContentData {
    uint32_t file; /* into this volume's files */
    uint64_t offset;
    uint64_t length;
    uint64_t physical; /* PACK_PHYSICAL_UNKNOWN: not known */
    uint32_t need_msec;
    double probability;
} PackContentData;

typedef struct PackContentVolume {
    uint8_t uuid[16];
    uint64_t subvolume_id;
    uint64_t device_size;
    char *fstype;
    char *mountpoint;
    DeviceClass device_class;
    uint32_t flags; /* PackVolumeFlags */
    PackContentMetadata *metadata;
    size_t n_metadata, allocated_metadata;
    PackContentFile *files;
    size_t n_files, allocated_files;
    PackContentData *data;
    size_t n_data, allocated_data;
} PackContentVolume;

typedef struct PackContent {
    Stage stage;
    Policy policy;
    uint32_t control_interval;
    uint64_t salt;
    usec_t deadline_usec;
    usec_t created_realtime;
    PackContentVolume *volumes;
    size_t n_volumes, allocated_volumes;
} PackContent;

/* Frees everything it holds, and the struct. */
PackContent *pack_content_free(PackContent *c);
DEFINE_CLEANUP(PackContent *, pack_content_free);
#define _cleanup_pack_content_ _cleanup_(pack_content_freep)

/* Lays the content out as pack.h says; the caller frees *ret (8-aligned, *ret_size bytes). What it
 * writes was read back by pack_open(): -EINVAL if the content is not in order or breaks a rule,
 * -E2BIG over a limit, -ENOMEM. */
int pack_write(const PackContent *c, void **ret, size_t *ret_size);
