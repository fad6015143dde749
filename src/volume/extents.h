/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where a file's bytes lie on the device: FIEMAP. */

#include "base/macros.h"

typedef struct Extent {
    uint64_t logical;  /* bytes in the file */
    uint64_t physical; /* bytes on the device (btrfs: in its logical space) */
    uint64_t length;   /* bytes */
} Extent;

typedef struct ExtentList {
    Extent *extents; /* rising logical, disjoint */
    size_t n, allocated;
    size_t n_skipped; /* inline, delayed, unwritten or unknown ones */
} ExtentList;

void extent_list_done(ExtentList *l);
#define _cleanup_extent_list_ _cleanup_(extent_list_done)

/* All extents of the file (not only the first ones: asks until FIEMAP_EXTENT_LAST), without
 * FLAG_SYNC, so that nothing is written for our sake. Extents whose place means nothing (inline,
 * delayed, unwritten, unknown, not aligned) are left out and counted; of compressed ones the place
 * is where they begin. *ret is zeroed or of an earlier call: its array is used again. 0,
 * -EOPNOTSUPP (no FIEMAP here), -E2BIG (more than 1,000,000 extents), -EBADMSG (the filesystem runs
 * in a circle), -ENOMEM, or another negative errno; then *ret holds no extents. */
int extents_read(int fd, ExtentList *ret);
