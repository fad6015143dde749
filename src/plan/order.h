/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Merges placed ranges that are close to one another on the device, and drops isolated ones. Pure.
 */

#include "volume/placed-ranges.h"

/* Merges successive ranges of one file:
 *
 *   - ranges that overlap,
 *   - ranges that touch in the file and lie at most max_gap bytes apart on the device; this gap
 *     is not read,
 *   - ranges of one run with a gap of at most max_gap bytes, as long as *budget_bytes covers it;
 *     this gap is read.
 *
 * A merged range gets the higher probability and the earlier need of the two. Returns the number of
 * bytes of the gaps that are read because of the merging, and subtracts it from the budget. The
 * list is sorted before and after. */
uint64_t placed_ranges_merge(PlacedRangeList *l, uint64_t max_gap, uint64_t *budget_bytes);

/* Drops isolated ranges of a probability below `min_probability`. A range is connected, and stays,
 * if a sequence of ranges, each at most max_gap bytes from the next one on the device, leads to a
 * range of at least that probability. Connected ranges cost only the time of their transfer,
 * because the head passes them anyway. A range without a place is never connected. The list is
 * sorted before and after. */
void placed_ranges_drop_isolated(PlacedRangeList *l, uint64_t max_gap, double min_probability);
