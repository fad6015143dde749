/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A function from byte offsets to DecayedSums that is constant between boundaries: how often each
 * part of a file, or of a block device, was needed. Pure. */

#include "base/decayed-sum.h"
#include "base/ranges.h"

typedef struct Segment {
    uint64_t start;
    uint64_t end;      /* exclusive */
    DecayedSum weight; /* never zero */
} Segment;

/* Sorted, disjoint; neighbours that touch differ in weight, so equal functions have equal arrays.
 */
typedef struct Segments {
    Segment *segments;
    size_t n, allocated;
} Segments;

void segments_done(Segments *s);

/* The function that is `weight` on the ranges and zero elsewhere. 0 or -ENOMEM. */
int segments_from_ranges(const RangeSet *ranges, DecayedSum weight, Segments *ret);

/* The sum of both, each first seen from so many generations later. 0 or -ENOMEM. */
int segments_sum(const Segments *a, uint64_t a_later, const Segments *b, uint64_t b_later,
                 Segments *ret);

/* True if no weight exceeds `whole` (decayed_sum_within). */
bool segments_within(const Segments *s, DecayedSum whole);

/* Appends a segment while reading: -EBADMSG unless it comes after the last and is not empty. */
int segments_append(Segments *s, Segment x);
