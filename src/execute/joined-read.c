/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "execute/joined-read.h"

#include <sys/mman.h>
#include <unistd.h>

int joined_read(const JoinedPart *parts, size_t n)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t total = 0, at = 0;
    char *memory, *mapped;
    int r = 0;

    for (size_t i = 0; i < n; i++) {
        if (parts[i].offset % page != 0 || (i + 1 < n && parts[i].length % page != 0))
            return -EINVAL;
        total += parts[i].length;
    }
    if (total == 0)
        return 0;
    memory = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return -errno;
    for (size_t i = 0; i < n; at += parts[i++].length) {
        mapped = mmap(memory + at, parts[i].length, PROT_READ, MAP_SHARED | MAP_FIXED, parts[i].fd,
                      (off_t)parts[i].offset);
        if (mapped == MAP_FAILED) {
            r = -errno;
            /* Before Linux 6.12, a call that failed may leave a gap, into which another thread may
             * map something. */
            if (at > 0)
                (void)munmap(memory, at);
            at += parts[i].length;
            if (at < total)
                (void)munmap(memory + at, total - at);
            return r;
        }
    }
    if (madvise(memory, total, MADV_WILLNEED) < 0)
        r = -errno;
    (void)munmap(memory, total);
    return r;
}
