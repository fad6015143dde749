/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "observe/mapping.h"

#include <inttypes.h>
#include <stdio.h>

#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_SWAPPED (UINT64_C(1) << 62)

bool mapping_parse(const char *line, Mapping *ret)
{
    Mapping m;
    char path;

    /* The kernel writes numbers of 64 bits at most, so scanf reads no other. A device, such as
     * /dev/mem, is no file of a filesystem; the caller finds its inode in no trace. */
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*4s %" SCNx64 " %x:%x %" SCNu64 " %c", &m.start,
               &m.end, &m.offset, &m.dev_major, &m.dev_minor, &m.inode, &path) != 7 ||
        m.start >= m.end || m.inode == 0 || path != '/' || m.offset > INT64_MAX - (m.end - m.start))
        return false;
    *ret = m;
    return true;
}

int mapping_add_touched(const Mapping *m, uint64_t at, const uint64_t *entries, size_t n,
                        uint64_t page_bytes, RangeSet *ret)
{
    for (size_t i = 0; i < n; i++) {
        size_t first = i;
        int r;

        while (i < n && entries[i] & (PAGE_PRESENT | PAGE_SWAPPED))
            i++;
        r = range_set_insert(ret, m->offset + (at - m->start) + first * page_bytes,
                             (i - first) * page_bytes);
        if (r < 0)
            return r;
    }
    return 0;
}
