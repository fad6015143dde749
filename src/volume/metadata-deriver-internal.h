/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What metadata-deriver.c has noted, for derive-btrfs.c and derive-xfs.c, and the list of what they
 * find. */

#include "volume/metadata-deriver.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* inode -> the probability that it is needed */
typedef struct Needed {
    UT_hash_handle hh;
    uint64_t inode;
    bool listed; /* a directory of which the entries are read */
    bool named;  /* counted in Parent.n_names of the directory above */
    double probability;
    bool oom;
} Needed;

/* A directory in which names are looked up, or that is listed. */
typedef struct NeededDirectory {
    const char *path; /* below the mount point */
    const Needed *needed;
    size_t n_names; /* how many names are looked up in it */
} NeededDirectory;

/* A name that is looked up in a directory. */
typedef struct NeededName {
    uint64_t directory; /* its inode */
    uint64_t hash;      /* btrfs_name_hash() */
    double probability;
} NeededName;

/* A range of a file's data. */
typedef struct NeededData {
    uint64_t inode;
    PredictedRange range; /* of the file */
    uint64_t place;
} NeededData;

typedef struct NeededMetadata {
    const Volume *v; /* as much of it as metadata_deriver_new() has copied */
    int volume_fd;
    const Needed *inodes; /* linked by hh.next */
    const NeededName *names;
    size_t n_names;
    const NeededData *data;
    size_t n_data;
    NeededDirectory *directories; /* for xfs only */
    size_t n_directories;
} NeededMetadata;

typedef struct Derived {
    DerivedMetadata *items;
    size_t n, allocated;
} Derived;

void derived_done(Derived *d);

/* Returns 0 or -ENOMEM. */
int derived_add(Derived *d, const DerivedMetadata *m);

/* Sorts the blocks. Of blocks that overlap the first one remains, and of blocks at the same place
 * the one with the highest probability. The caller frees *ret. */
void derived_finish(Derived *d, DerivedMetadata **ret, size_t *ret_n);

/* Like metadata_deriver_finish(), for btrfs. */
int derive_btrfs_items(const NeededMetadata *n, DerivedMetadata **ret, size_t *ret_n);

/* Like metadata_deriver_finish(), for xfs. Sorts the directories. */
int derive_xfs_items(NeededMetadata *n, DerivedMetadata **ret, size_t *ret_n);
