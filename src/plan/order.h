/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Turns the maps and extents of files into placed ranges in physical order. Pure. */

#include "model/prediction.h"
#include "volume/extents.h"

/* A range of a file that is contiguous on the device. */
typedef struct PlacedRange {
    uint32_t file;
    uint64_t offset; /* bytes in the file */
    uint64_t length;
    uint64_t physical; /* bytes on the device; PACK_PHYSICAL_UNKNOWN where no extent covers it */
    uint64_t physical_end; /* bytes on the device; more than physical + length once ranges with a
                              gap between them were merged */
    size_t run; /* ranges of one file with equal runs lie in one contiguous stretch of the device,
                   together with the whole part of the file between them */
    double probability;
    usec_t need;
} PlacedRange;

typedef struct PlacedRangeList {
    PlacedRange *ranges;
    size_t n, allocated;
} PlacedRangeList;

void placed_range_list_done(PlacedRangeList *l);

/* Widens the map to whole pages, splits it at the borders of the extents and appends each part. A
 * hole has nothing to read: no range is appended for it. If there are no extents at all, the whole
 * map is appended with unknown place. `extents` rise. 0 or -ENOMEM. */
int placed_ranges_add(PlacedRangeList *l, uint32_t file, const PredictedMap *map, usec_t need,
                      const Extent *extents, size_t n_extents);

/* Sorts by place on the device; unknown places come last, by file and offset. */
void placed_ranges_sort(PlacedRangeList *l);

/* Merges neighbours of one file:
 * - those that overlap,
 * - those that touch in the file and lie at most max_gap apart on the device (that gap is not
 * read),
 * - those of one run with a gap of at most max_gap, which is then read too, as long as
 * *budget_bytes pays for it. A merged range has the higher probability and the earlier need of the
 * two. Returns the bytes of gap that are now read, and subtracts them from the budget. The list is
 * sorted before and after. */
uint64_t placed_ranges_merge(PlacedRangeList *l, uint64_t max_gap, uint64_t *budget_bytes);
