/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which pages of a file are in the page cache, by mincore(2). */

#include "base/ranges.h"

/* True if mincore(2) can be expected to tell the truth of everybody's files: without CAP_FOWNER it
 * reports every page of other users' files resident. */
bool residency_is_truth(void);

/* Byte ranges, page aligned at the start, of an open regular file of that size. Reads nothing in.
 * 0; -EPERM if the kernel does not tell the truth of this file (a page that cannot be resident is
 * reported to be); -EFBIG, -ENOMEM, or another negative errno. */
int residency_read(int fd, uint64_t size, RangeSet *ret);
