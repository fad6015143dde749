/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Computes the positions of ranges of files on their disks: splits them by extents, and sorts them
 * by position. Pure. */

#include "base/ranges.h"
#include "volume/extents.h"

typedef struct PlacedRangeList {
    PlacedRange *ranges;
    size_t n, allocated;
} PlacedRangeList;

void placed_range_list_done(PlacedRangeList *l);
#define _cleanup_placed_range_list_ _cleanup_(placed_range_list_done)

/* Decides whether a part that no extent covers is kept, if the file has extents. Such a part is a
 * hole, which the kernel fills with zeroes without I/O, or it has no position on the device yet. */
typedef enum PlacedHoles {
    PLACED_HOLES_DROP,
    PLACED_HOLES_KEEP, /* keep holes as ranges with an unknown place */
} PlacedHoles;

/* Widens the range to whole pages of `page_bytes` (1: leaves it as it is), splits it at the borders
 * of the extents and appends each part, with the file, disk, probability and need of `range`. If
 * there are no extents at all, the range is appended whole with unknown place. `extents` are in
 * rising order. Returns 0 or -ENOMEM. */
int placed_ranges_add(PlacedRangeList *l, const PlacedRange *range, uint64_t page_bytes,
                      const Extent *extents, size_t n_extents, PlacedHoles holes);

/* Sorts by disk, and then by the place on the disk. Ranges with unknown places come last on their
 * disk, sorted by file and offset. */
void placed_ranges_sort(PlacedRangeList *l);
