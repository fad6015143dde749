/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which placed ranges one read serves. Pure. */

#include "volume/placed-ranges.h"

/* Merges neighbours of one file:
 * - those that overlap,
 * - those that touch in the file and lie at most max_gap apart on the device (that gap is not
 * read),
 * - those of one run with a gap of at most max_gap, which is then read too, as long as
 * *budget_bytes pays for it. A merged range has the higher probability and the earlier need of the
 * two. Returns the bytes of gap that are now read, and subtracts them from the budget. The list is
 * sorted before and after. */
uint64_t placed_ranges_merge(PlacedRangeList *l, uint64_t max_gap, uint64_t *budget_bytes);
