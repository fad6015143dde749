/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Delays the repeated reading of ranges that the kernel reclaims, longer each time. If a range that
 * was read is missing, the kernel needed its memory for other data. Reading the range in every
 * cycle would evict that other data and keep the disk busy. Therefore the range is not read for a
 * time that doubles with each loss, up to an hour. The kernel does not report whether a directory's
 * entries are still in memory, so each directory is listed at a fixed interval. Pure.
 *
 * All times are microseconds of one clock that never steps back. */

#include "base/ranges.h"
#include "base/time-util.h"

#define REFETCH_WAIT_MIN_USEC (120 * USEC_PER_SEC)
#define REFETCH_WAIT_MAX_USEC (3600 * USEC_PER_SEC)
/* The paths that are remembered, more than the prefetch thread looks up in a pass, and the bytes of
 * their names. If there is no room for a path, the paths are forgotten whose delay began first, if
 * it has ended. If there is still no room, the path is not remembered. */
#define REFETCH_PATHS_MAX 32768U
#define REFETCH_BYTES_MAX (4U << 20)

typedef struct RefetchBackoff RefetchBackoff; /* NULL is valid and empty */

RefetchBackoff *refetch_backoff_free(RefetchBackoff *b);

/* Removes the ranges from `missing` that must not be read yet at `now`. Returns 0 or -ENOMEM. */
int refetch_backoff_filter(const RefetchBackoff *b, const char *path, usec_t now,
                           RangeSet *missing);

/* Notes that the range was read at `now`. Call it only for ranges that were read. Ranges that a
 * cancelled job did not read stay due. Returns 0, or -ENOMEM if memory runs out or there is no
 * room. */
int refetch_backoff_note_read(RefetchBackoff **b, const char *path, usec_t now, Range range);

/* Returns true if the directory has not been listed within `interval_usec` before `now`, and notes
 * that it is listed now. If memory runs out or there is no room, nothing is noted and the function
 * returns true again at the next call. */
bool refetch_backoff_list_due(RefetchBackoff **b, const char *path, usec_t now,
                              usec_t interval_usec);
