/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Metadata for which no process waits, but which the filesystem itself reads at some moment of the
 * boot: the block bitmaps of ext4. A request of the filesystem takes seeks in the middle of the
 * sweep. Near a place that the sweep visits anyway, the sweep reads such metadata first. Pure. */

#include "base/ranges.h"
#include "pack/pack-writer.h"

/* Extends the `n` ranges of metadata, which are sorted and disjoint and remain so, to the parts of
 * `passing` that lie at most `max_gap` bytes from one of them. Takes the bytes that are added from
 * *budget; a part for which the budget is too small is left out. Returns how many bytes of gaps
 * were added. */
uint64_t passing_join(const RangeSet *passing, PackContentMetadata *metadata, size_t n,
                      uint64_t max_gap, uint64_t *budget);
