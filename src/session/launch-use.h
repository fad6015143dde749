/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What control starts of applications need: the results of session/launch-observation.h, and how
 * they follow from the page cache before and after a start. Pure.
 *
 * A control start is not replayed, so what enters the page cache during the start was read by the
 * application, or by another process meanwhile. What was in memory before may have been needed or
 * not. It therefore counts as needed if it is in the launch set already. What the start has not
 * read, although it was not in memory, is not needed. */

#include "base/ranges.h"
#include "session/launch-table.h"

/* How many control starts of one session are observed. */
#define LAUNCH_USES_MAX 32U

/* A start with more ranges than this is useless: something else has read the disk meanwhile. */
#define LAUNCH_NEED_RANGES_MAX 20000U

/* What was in the page cache of one file or block device at one moment, in bytes. */
typedef struct CachedPages {
    RangeSet resident;
    RangeSet seen; /* resident, or reclaimed before that moment */
} CachedPages;

void cached_pages_done(CachedPages *p);

/* A part of what one start needed. */
typedef struct LaunchNeed {
    char uuid[40];  /* of the filesystem, as volume/volume.h has it */
    uint64_t inode; /* of the file; 0: metadata of the filesystem */
    RangeSet ranges;
} LaunchNeed;

typedef struct LaunchUse {
    LaunchKey key;
    LaunchNeed *needs;
    size_t n, allocated;
    size_t n_ranges; /* of all needs */
} LaunchUse;

/* Valid if zeroed. */
typedef struct LaunchUses {
    LaunchUse items[LAUNCH_USES_MAX];
    size_t n;
} LaunchUses;

void launch_use_done(LaunchUse *u);
void launch_uses_done(LaunchUses *u);

/* Computes what a start needed of a file or block device from its pages before and after the start.
 * `planned`: what the launch set has of it. Returns 0 or -ENOMEM. */
int launch_need_compute(const CachedPages *before, const CachedPages *after,
                        const RangeSet *planned, RangeSet *ret);

/* Adds a part; nothing if there are no ranges. Takes over *ranges. Returns 0, -E2BIG (more than
 * LAUNCH_NEED_RANGES_MAX ranges), -EINVAL (the UUID is too long), or -ENOMEM. */
int launch_use_add(LaunchUse *u, const char *uuid, uint64_t inode, RangeSet *ranges);

/* Returns true if a start with that key is in the list. */
bool launch_uses_have(const LaunchUses *u, LaunchKey key);
