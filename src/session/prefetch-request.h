/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A request of the session cycle to the prefetch thread to bring an object into memory. */

#include "base/ranges.h"

typedef enum PrefetchKind {
    PREFETCH_FILE,      /* a byte range of a file; of length 0: its inode */
    PREFETCH_DIRECTORY, /* the entries of a directory and their inodes */
    PREFETCH_METADATA,  /* a byte range of the block device of a filesystem */
    _PREFETCH_KIND_MAX,
    _PREFETCH_KIND_INVALID = -EINVAL,
} PrefetchKind;

const char *prefetch_kind_to_string(PrefetchKind k);

typedef struct PrefetchRequest {
    const char *path; /* for metadata the filesystem's UUID; borrowed from the cycle */
    Range range;
    double probability; /* equation 4.16 for the scores of mixture_rank(), which are not
                           probabilities; for metadata, the probability that a session needs it */
    PrefetchKind kind;
} PrefetchRequest;
