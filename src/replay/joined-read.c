/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "replay/joined-read.h"

#include <sys/mman.h>

int joined_read(const JoinedPart *parts, size_t n)
{
    uint64_t total = 0, at = 0;
    char *memory;
    int r = 0;

    for (size_t i = 0; i < n; i++)
        total += parts[i].length;
    memory = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return -errno;
    for (size_t i = 0; i < n && r >= 0; at += parts[i++].length)
        if (mmap(memory + at, parts[i].length, PROT_READ, MAP_SHARED | MAP_FIXED, parts[i].fd,
                 (off_t)parts[i].offset) == MAP_FAILED)
            r = -errno;
    if (r >= 0 && madvise(memory, total, MADV_WILLNEED) < 0)
        r = -errno;
    (void)munmap(memory, total);
    return r;
}
