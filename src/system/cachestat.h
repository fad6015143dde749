/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* cachestat(2), since Linux 6.5, counts how many pages of a part of a file or block device are in
 * the page cache, and how many were reclaimed. */

#include "base/macros.h"

typedef enum CachestatWhat {
    CACHESTAT_RESIDENT, /* in the page cache now */
    CACHESTAT_EVICTED,  /* reclaimed, and not read again since */
    CACHESTAT_SEEN,     /* either */
} CachestatWhat;

/* Returns true if this kernel has cachestat(2) and allows it to this process. */
bool cachestat_available(void);

/* Returns how many pages of [offset, offset + length) are in the state `what`. Returns -ENOSYS or
 * -EPERM where the kernel has no cachestat or refuses it, -EOPNOTSUPP for files on hugetlbfs, or
 * another negative errno. */
int64_t cachestat_count(int fd, CachestatWhat what, uint64_t offset, uint64_t length);

/* Returns 1 if every page of [offset, offset + length) up to the end of a regular file is resident,
 * 0 if not, or the negative errno of cachestat_count(). */
int cachestat_is_resident(int fd, uint64_t offset, uint64_t length);
