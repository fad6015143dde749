/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/residency.h"

#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* 256 MiB of file a call: 64 KiB of answer. */
#define CHUNK (256ULL * 1024 * 1024)

bool residency_is_truth(void)
{
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3] = {0};

    return syscall(SYS_capget, &h, d) == 0 &&
           (d[CAP_TO_INDEX(CAP_FOWNER)].effective & CAP_TO_MASK(CAP_FOWNER));
}

int residency_read(int fd, uint64_t size, RangeSet *ret)
{
    _cleanup_range_set_ RangeSet ranges = {0};
    static unsigned char pages[CHUNK / 4096];
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    for (uint64_t at = 0; at < size; at += CHUNK) {
        uint64_t length = MIN(size - at, CHUNK), n = DIV_ROUND_UP(length, page);
        void *map = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, (off_t)at);
        int r = 0;

        if (map == MAP_FAILED)
            return -errno;
        if (mincore(map, length, pages) < 0)
            r = -errno;
        munmap(map, length);
        for (uint64_t i = 0, start; r >= 0 && i < n; i++) {
            if (!(pages[i] & 1))
                continue;
            for (start = i; i < n && (pages[i] & 1); i++)
                ;
            r = range_set_add(&ranges, at + start * page, MIN(at + i * page, size));
        }
        if (r < 0)
            return r;
    }
    *ret = ranges;
    ranges = (RangeSet){0};
    return 0;
}
