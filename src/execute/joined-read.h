/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads neighbouring parts of several files with one request to the device. */

#include "base/macros.h"

/* A part of an open file. */
typedef struct JoinedPart {
    int fd;
    uint64_t offset, length; /* bytes, multiples of the machine's page size */
} JoinedPart;

/* Asks the kernel to read all parts into the page cache, and returns before the data is there.
 * Parts that follow one another on the device become one request: the kernel collects the requests
 * of one system call before it submits them, and joins neighbours. posix_fadvise(2) takes one file
 * per call. madvise(2) takes a range of memory, in which this function maps the parts one after the
 * other. Returns 0, or a negative errno if a part cannot be mapped, for example because it is a
 * directory; nothing was requested then. */
int joined_read(const JoinedPart *parts, size_t n);
