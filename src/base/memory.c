/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/memory.h"

#include "base/rooted.h"

#include <string.h>

#define MEMINFO_SIZE_MAX (1U << 16)

/* Reads the number of kB after "KEY:" and converts it to bytes. */
static int find_kb(const char *text, const char *key, uint64_t *ret)
{
    size_t l = strlen(key);

    for (const char *line = text; *line;) {
        if (strncmp(line, key, l) == 0 && line[l] == ':') {
            char *end;
            unsigned long long v = strtoull(line + l + 1, &end, 10);

            if (end == line + l + 1 || v > UINT64_MAX / 1024)
                return -EBADMSG;
            *ret = (uint64_t)v * 1024;
            return 0;
        }
        line = strchrnul(line, '\n');
        line += *line == '\n';
    }
    return -EBADMSG;
}

int memory_facts_parse(const char *meminfo, MemoryFacts *ret)
{
    MemoryFacts m = {0};

    if (find_kb(meminfo, "MemTotal", &m.total_bytes) < 0 ||
        find_kb(meminfo, "MemFree", &m.free_bytes) < 0)
        return -EBADMSG;
    if (find_kb(meminfo, "MemAvailable", &m.available_bytes) < 0)
        m.available_bytes = 0;
    if (find_kb(meminfo, "Cached", &m.cached_bytes) < 0)
        m.cached_bytes = 0;
    *ret = m;
    return 0;
}

int memory_facts_read(int root_fd, MemoryFacts *ret)
{
    _cleanup_free_ char *text = NULL;
    int r = rooted_read(root_fd, "/proc/meminfo", MEMINFO_SIZE_MAX, &text, NULL);

    return r < 0 ? r : memory_facts_parse(text, ret);
}
