/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which ranges of a file or block device are in the page cache, by bisection with cachestat(2). On
 * ext2/3/4 metadata lives in the block device's page cache, where mincore(2) does not show it.
 *
 * It also tells which pages were there and have been reclaimed since: the kernel leaves a shadow
 * entry in their place (mm/workingset.c). What a short boot read and a reclaimer took away before
 * the stage ended is not lost for the trace. */

#include "base/cachestat.h"
#include "base/ranges.h"

/* How many pages of [offset, offset + length) are resident: < 0 on error. */
typedef int64_t (*count_resident_t)(void *arg, uint64_t offset, uint64_t length);

/* Finds the resident ranges of [0, size) by bisection: empty and full halves are not looked into,
 * so the calls grow with the number of ranges times the logarithm of the size. Byte ranges, whole
 * pages (the last one clipped to size). Pure but for `count`. 0, -ENOMEM, or what count returned.
 * *ret_calls (may be NULL): how often it was called. */
int bisect_resident(count_resident_t count, void *arg, uint64_t size, uint64_t page, RangeSet *ret,
                    unsigned *ret_calls);

/* These ranges of an open file or device. -ENOSYS or -EPERM where the kernel has no cachestat or
 * refuses it; -EOPNOTSUPP for files it cannot be asked of. */
int cachestat_ranges(int fd, CachestatWhat what, uint64_t size, RangeSet *ret);
