/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "observe/mapping.h"

#include "base/macros.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_SWAPPED (UINT64_C(1) << 62)

/* Returns true if the file of the mapping was removed, or never had a name: the System V shared
 * memory of X11 and the files of memfd_create(2) are listed in this way. */
static bool is_deleted(const char *line)
{
    static const char deleted[] = " (deleted)";
    size_t n = strcspn(line, "\n"), k = strlen(deleted);

    return n >= k && memcmp(line + n - k, deleted, k) == 0;
}

bool mapping_parse(const char *line, Mapping *ret)
{
    Mapping m;
    char path;

    /* The kernel writes numbers of 64 bits at most, so scanf reads no other. A device, such as
     * /dev/mem, is no file of a filesystem; the caller finds its inode in no trace. */
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*4s %" SCNx64 " %x:%x %" SCNu64 " %c", &m.start,
               &m.end, &m.offset, &m.dev_major, &m.dev_minor, &m.inode, &path) != 7 ||
        m.start >= m.end || m.inode == 0 || path != '/' ||
        m.offset > INT64_MAX - (m.end - m.start) || is_deleted(line))
        return false;
    *ret = m;
    return true;
}

static int compare_lengths(const void *a, const void *b)
{
    const Mapping *x = a, *y = b;
    uint64_t m = x->end - x->start, n = y->end - y->start;

    if (m != n)
        return m < n ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

int mapping_parse_all(char *text, Mapping **ret, size_t *ret_n)
{
    Mapping *mappings = NULL, m;
    size_t n = 0, allocated = 0;

    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        if (!mapping_parse(line, &m))
            continue;
        if (grow_array(&mappings, &allocated, n + 1, sizeof(Mapping)) < 0) {
            free(mappings);
            return -ENOMEM;
        }
        mappings[n++] = m;
    }
    if (n > 0)
        qsort(mappings, n, sizeof(Mapping), compare_lengths);
    *ret = mappings;
    *ret_n = n;
    return 0;
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
