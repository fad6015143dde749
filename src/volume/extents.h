/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the position of a file's bytes on the device, with FIEMAP. */

#include "base/macros.h"

typedef struct Extent {
    uint64_t logical;  /* bytes in the file */
    uint64_t physical; /* bytes on the device (btrfs: in its logical space) */
    uint64_t length;   /* bytes */
    uint32_t run; /* index of the first extent of the stretch without gaps, in the file and on the
                     device, to which this one belongs: filesystems split long stretches */
} Extent;

typedef struct ExtentList {
    Extent *extents; /* rising logical, disjoint */
    size_t n, allocated;
    size_t n_skipped; /* extents that cannot be read from the device */
    size_t n_delayed; /* of these, extents whose place the filesystem has yet to choose */
} ExtentList;

void extent_list_done(ExtentList *l);
#define _cleanup_extent_list_ _cleanup_(extent_list_done)

/* The maximum number of extents that are kept of one file. They take 3.2 MB. */
#define EXTENTS_PER_FILE_MAX 100000U

/* Returns the run of extent i. The runs of the extents before it are set. */
static inline uint32_t extent_run(const Extent *extents, size_t i)
{
    return i > 0 && extents[i - 1].logical + extents[i - 1].length == extents[i].logical &&
                           extents[i - 1].physical + extents[i - 1].length == extents[i].physical
                   ? extents[i - 1].run
                   : (uint32_t)i;
}

/* Reads all extents of the file up to FIEMAP_EXTENT_LAST, without FLAG_SYNC, so that nothing is
 * written. Extents that cannot be read from the device (inline, delayed, unwritten, unknown, not
 * aligned) are left out and counted. The position of a compressed extent is its beginning. Before
 * the call *ret is zeroed, or holds the result of an earlier call, whose array is reused. Returns
 * 0, -EOPNOTSUPP (no FIEMAP here), -E2BIG (more than `max` extents), -EBADMSG (the filesystem
 * reports extents in a circle), -ENOMEM, or another negative errno. On failure *ret holds no
 * extents. */
int extents_read(int fd, size_t max, ExtentList *ret);

/* Like extents_read(), but also returns extents that are allocated and not written yet. */
int extents_read_allocated(int fd, size_t max, ExtentList *ret);
