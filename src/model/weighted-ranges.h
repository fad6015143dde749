/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A function from byte offsets to DecayedSums that is constant between boundaries: how often each
 * part of a file, or of a block device, was needed. Pure. */

#include "base/ranges.h"
#include "chains/decayed-sum.h"

typedef struct WeightedRange {
    uint64_t offset;
    uint64_t length;   /* above 0 */
    DecayedSum weight; /* never zero */
} WeightedRange;

/* Returns the offset of the first byte after the range. */
static inline uint64_t weighted_range_end(const WeightedRange *x)
{
    return x->offset + x->length;
}

/* The ranges are sorted and disjoint. Ranges that touch differ in weight, so equal functions have
 * equal arrays. */
typedef struct WeightedRanges {
    WeightedRange *ranges;
    uint32_t n, allocated; /* a model has several of these for each file, so they are small */
} WeightedRanges;

/* The functions below return -ENOMEM for more ranges than this. */
#define WEIGHTED_RANGES_MAX (UINT32_MAX / 4)

void weighted_ranges_done(WeightedRanges *s);

/* Makes the function that is `weight` on the ranges and zero elsewhere. Returns 0 or -ENOMEM. */
int weighted_ranges_from_ranges(const RangeSet *ranges, DecayedSum weight, WeightedRanges *ret);

/* Adds two functions, after `a` was decayed by `a_later` generations and `b` by `b_later`. Returns
 * 0 or -ENOMEM. */
int weighted_ranges_sum(const WeightedRanges *a, uint64_t a_later, const WeightedRanges *b,
                        uint64_t b_later, WeightedRanges *ret);

/* Rounds all weights (decayed_sum_round()). Ranges that touch and then have the same weight become
 * one. */
void weighted_ranges_round(WeightedRanges *s);

/* Frees the memory that the array has beyond its ranges. Most files have one range, and a model has
 * hundreds of thousands of files. */
void weighted_ranges_trim(WeightedRanges *s);

/* Appends a range that was read from a file. Returns 0, -ENOMEM, or -EBADMSG if the range is empty,
 * overflows, has no weight, begins before the end of the last range, or touches the last range and
 * has the same weight. */
int weighted_ranges_append(WeightedRanges *s, WeightedRange x);
