/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the pages of a file of the stage: those that are resident, and those that were
 * reclaimed. */

#include "base/ranges.h"
#include "base/time-util.h"

#include <stdbool.h>

/* What is searched for. */
typedef struct FilePagesQuery {
    uint64_t size_bytes; /* of the file */
    usec_t deadline;     /* CLOCK_MONOTONIC */
    bool reclaimed;      /* pages that were read and have been reclaimed count, too (cachestat) */
} FilePagesQuery;

/* Opens the regular file of the descriptor (O_PATH) and adds its pages to *ret. `call_dev` is the
 * first argument of disk_call(): opening a file and, without cachestat(2), reading its extents may
 * read the disk. A file that cannot be opened has no pages. Returns 0, or 1 if the ranges are not
 * complete; -ETIMEDOUT if the disk does not answer; -EPERM if the kernel does not answer truthfully
 * for this file; -ENOMEM, or another negative errno. */
int file_pages_read(uint64_t call_dev, int path_fd, const FilePagesQuery *query, RangeSet *ret);
