/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the ranges of a file or block device that are in the page cache, by bisection with
 * cachestat(2). On ext2/3/4 metadata lies in the page cache of the block device, where mincore(2)
 * does not show it.
 *
 * cachestat also counts the pages that were in the cache and have been reclaimed since: the kernel
 * leaves a shadow entry in their place (mm/workingset.c). Therefore a trace also contains data that
 * was read in the stage and reclaimed before the stage ended. */

#include "base/ranges.h"
#include "base/time-util.h"
#include "system/cachestat.h"

/* Returns how many pages of [offset, offset + length) are resident, or a negative errno; -ETIME
 * ends the search with what was found so far. */
typedef int64_t (*count_resident_t)(void *arg, uint64_t offset, uint64_t length);

/* Adds the resident ranges of [offset, offset + length) to *ranges. Returns 0 or a negative errno;
 * -ETIME as above. */
typedef int (*read_window_t)(void *arg, uint64_t offset, uint64_t length, RangeSet *ranges);

typedef struct ResidencySearch {
    count_resident_t count;
    /* Reads a window in which some pages are resident and others are not. NULL: the bisection goes
     * down to single pages. */
    read_window_t read_window;
    uint64_t window_bytes; /* a multiple of page_bytes */
    void *arg;
    uint64_t page_bytes;
    unsigned calls_max; /* of both functions together */
} ResidencySearch;

/* Finds the resident ranges of [0, size) by bisection. The first call counts the whole file. Halves
 * that are empty or full are not divided further. The number of calls therefore grows with the
 * number of windows that hold pages, times the logarithm of the size. Pure, except for the two
 * functions. *ret holds byte ranges of whole pages, the last one clipped to size. Returns 0; 1 if
 * calls_max was reached or a function returned -ETIME (then *ret holds, in rising order, what was
 * found up to there); -ENOMEM, or another error of the functions. *ret_calls (may be NULL): how
 * many calls were made. */
int search_resident(const ResidencySearch *search, uint64_t size, RangeSet *ret,
                    unsigned *ret_calls);

/* A count_resident_t for an open file; `arg` is a CachestatQuery. Returns -ETIME after the
 * deadline. */
typedef struct CachestatQuery {
    int fd;
    CachestatWhat what;
    usec_t deadline; /* CLOCK_MONOTONIC; USEC_INFINITY: none */
} CachestatQuery;
int64_t cachestat_query(void *arg, uint64_t offset, uint64_t length);

/* The maximum number of calls of one search. They take 20 ms to 50 ms. A search that finds 5,000
 * ranges takes at least 9,999 calls; at most 30,000 calls were ever counted. */
#define CACHESTAT_CALLS_MAX 100000U

/* Finds the ranges of an open file or device that are in the state `what`. `deadline` is that of
 * CachestatQuery. Returns 0; 1 if the search ended at the deadline or at CACHESTAT_CALLS_MAX, with
 * what was found so far; -ENOSYS or -EPERM where the kernel has no cachestat or refuses it;
 * -EOPNOTSUPP for files that cachestat does not support. */
int cachestat_ranges(int fd, CachestatWhat what, uint64_t size, usec_t deadline, RangeSet *ret);
