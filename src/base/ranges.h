/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Ranges of bytes, and sets of ranges. A RangeSet is always sorted, and its ranges neither overlap
 * nor touch. Equal sets therefore have equal arrays. Pure. */

#include "base/macros.h"
#include "base/time-util.h"

typedef struct Range {
    uint64_t offset;
    uint64_t length; /* above 0 in every stored range; offset + length does not overflow */
} Range;

/* Returns the offset of the first byte after the range. */
static inline uint64_t range_end(const Range *r)
{
    return r->offset + r->length;
}

/* A range of a file or block device, in bytes, with the probability that it is needed. */
typedef struct PredictedRange {
    uint64_t offset;
    uint64_t length;
    double probability;
} PredictedRange;

#define PHYSICAL_UNKNOWN UINT64_MAX

/* A range of a file, in bytes, that is contiguous on the device. */
typedef struct PlacedRange {
    uint32_t file; /* a number that the owner of the list assigns */
    uint64_t offset;
    uint64_t length;
    uint64_t disk;     /* the physical device; positions on different disks cannot be compared */
    uint64_t physical; /* on the device; PHYSICAL_UNKNOWN where no extent covers it */
    uint64_t physical_end; /* on the device; more than physical + length if ranges with a gap
                              between them were merged */
    size_t run; /* ranges of one file that have the same run, and the parts of the file between
                   them, lie in one contiguous stretch of the device */
    double probability;
    usec_t need;    /* mean instant of first use since the stage's start; USEC_INFINITY: unknown */
    usec_t advance; /* how long before its need replay reads it with its neighbours (plan/bins.h) */
} PlacedRange;

typedef struct RangeSet {
    Range *ranges;
    size_t n;
    size_t allocated;
} RangeSet;

/* Frees the array and leaves an empty set. A zeroed RangeSet is a valid empty one. */
void range_set_done(RangeSet *s);

/* Adds a range; a length of 0 adds nothing. O(1) if ranges are appended in rising order, else O(n).
 * Returns 0, -EINVAL if offset + length overflows, or -ENOMEM; the set is unchanged on failure. */
int range_set_insert(RangeSet *s, uint64_t offset, uint64_t length);

/* *ret becomes a deep copy of a's ranges. Returns 0 or -ENOMEM. `ret` must be empty or
 * uninitialised. */
int range_set_copy(const RangeSet *a, RangeSet *ret);

/* *ret becomes the union, the intersection or the difference (a without b). O(|a| + |b|). Returns 0
 * or -ENOMEM. `ret` is written only on success and must not be a or b. */
int range_set_union(const RangeSet *a, const RangeSet *b, RangeSet *ret);
int range_set_intersect(const RangeSet *a, const RangeSet *b, RangeSet *ret);
int range_set_subtract(const RangeSet *a, const RangeSet *b, RangeSet *ret);

/* *to becomes the union of both sets. O(|to| + |more|). Returns 0 or -ENOMEM, with *to
 * unchanged. */
int range_set_unite(RangeSet *to, const RangeSet *more);

/* Returns the sum of the lengths, at most UINT64_MAX. */
uint64_t range_set_total(const RangeSet *s);

/* Returns how many bytes of the range are in the set. O(log |s| + the ranges that it meets). */
uint64_t range_set_covered(const RangeSet *s, Range range);

/* Returns true if the invariant stated above holds. A reader that fills a set directly checks
 * this. */
bool range_set_valid(const RangeSet *s);

#define _cleanup_range_set_ _cleanup_(range_set_done)
