/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the pages of a file that are in the page cache. mincore(2) reports each page. In a file
 * larger than a window (1,024 pages), cachestat(2) first finds the windows with resident pages, so
 * a file without resident pages takes one call, even if it has 8 EiB. If cachestat is missing,
 * lseek(SEEK_DATA) leaves out the holes. */

#include "base/ranges.h"
#include "base/time-util.h"

/* Returns true if mincore(2) reports the resident pages of files of all users. Without CAP_FOWNER
 * it reports every page of other users' files as resident. */
bool residency_is_observable(void);

/* The maximum number of calls for one file: those that read a window, and those that search for
 * windows. It suffices for 8 GiB of data at 4 KiB a page if every window holds a few pages. */
#define RESIDENCY_CALLS_MAX 8192U

/* Reads the resident byte ranges of an open regular file (or block device) of `size` bytes, in
 * whole pages except at the end of the file. On a kernel without cachestat(2) it reads the extents
 * of the file from the disk. With cachestat(2) it reads nothing from the disk. Returns 0; 1 if it
 * ended at the deadline (CLOCK_MONOTONIC; USEC_INFINITY: none) or at RESIDENCY_CALLS_MAX: then *ret
 * holds what was found so far; -EPERM if the kernel does not answer truthfully for this file (it
 * reports a page as resident that cannot be resident); -ENOMEM, or another negative errno. */
int residency_read(int fd, uint64_t size, usec_t deadline, RangeSet *ret);
