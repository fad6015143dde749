/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "system/memory.h"

#include "base/rooted.h"

#include <string.h>
#include <unistd.h>

#define MEMINFO_SIZE_MAX (1U << 16)
#define CGROUPS          "/sys/fs/cgroup"
#define CGROUP_PATH_MAX  4096U

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

/* Returns the number after "KEY " in memory.stat, or 0. */
static uint64_t find_count(const char *text, const char *key)
{
    size_t l = strlen(key);

    for (const char *line = text; *line;) {
        if (strncmp(line, key, l) == 0 && line[l] == ' ')
            return strtoull(line + l + 1, NULL, 10);
        line = strchrnul(line, '\n');
        line += *line == '\n';
    }
    return 0;
}

/* Reads a file of a control group. The caller frees *ret. */
static int read_group(int root_fd, const char *group, const char *name, char **ret)
{
    char path[CGROUP_PATH_MAX + 64];

    snprintf(path, sizeof(path), CGROUPS "%s/%s", group, name);
    return rooted_read(root_fd, path, MEMINFO_SIZE_MAX, ret, NULL);
}

/* Returns the number in the file, or UINT64_MAX if the file has none or says "max". */
static uint64_t read_limit(int root_fd, const char *group, const char *name)
{
    _cleanup_free_ char *text = NULL;

    if (read_group(root_fd, group, name, &text) < 0 || *text < '0' || *text > '9')
        return UINT64_MAX;
    return strtoull(text, NULL, 10);
}

/* Reduces the facts to what the group leaves to its processes. */
static void apply_group(int root_fd, const char *group, MemoryFacts *m)
{
    uint64_t limit = MIN(read_limit(root_fd, group, "memory.max"),
                         read_limit(root_fd, group, "memory.high"));
    uint64_t used = read_limit(root_fd, group, "memory.current"), file = 0, left;
    _cleanup_free_ char *stat = NULL;

    if (limit == UINT64_MAX || used == UINT64_MAX)
        return;
    if (read_group(root_fd, group, "memory.stat", &stat) >= 0)
        file = find_count(stat, "inactive_file");
    left = limit - MIN(used, limit);
    m->total_bytes = MIN(m->total_bytes, limit);
    m->free_bytes = MIN(m->free_bytes, left);
    /* The kernel reclaims the inactive part of the page cache at the limit. */
    file = left + MIN(file, limit - left);
    m->available_bytes = MIN(m->available_bytes, MAX(file, UINT64_C(1))); /* 0 means unknown */
}

/* Writes the path of the control group of this process into `group`. Returns false if there is none
 * of version 2. */
static bool find_group(int root_fd, char group[static CGROUP_PATH_MAX])
{
    _cleanup_free_ char *text = NULL;
    const char *own;

    if (rooted_read(root_fd, "/proc/self/cgroup", MEMINFO_SIZE_MAX, &text, NULL) < 0)
        return false;
    own = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (!own)
        return false;
    own += strcspn(own, "/");
    snprintf(group, CGROUP_PATH_MAX, "%.*s", (int)strcspn(own, "\n"), own);
    return true;
}

int memory_facts_read_own(int root_fd, MemoryFacts *ret)
{
    char group[CGROUP_PATH_MAX];
    int r = memory_facts_read(root_fd, ret);

    if (r < 0 || !find_group(root_fd, group))
        return r;
    for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
        *end = 0;
        apply_group(root_fd, group, ret);
    }
    return 0;
}

void cache_facts_apply_group(const char *stat, CacheFacts *f)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    f->inactive_bytes = find_count(stat, "inactive_file");
    f->refaulted_bytes = find_count(stat, "workingset_refault_file") * page;
    if (strstr(stat, "\npgsteal "))
        f->evicted_bytes = find_count(stat, "pgsteal") * page;
}

int cache_facts_read_own(int root_fd, CacheFacts *ret)
{
    _cleanup_free_ char *meminfo = NULL, *vmstat = NULL;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), least = UINT64_MAX;
    char group[CGROUP_PATH_MAX];
    CacheFacts f = {0};
    int r = rooted_read(root_fd, "/proc/meminfo", MEMINFO_SIZE_MAX, &meminfo, NULL);

    if (r < 0)
        return r;
    if (find_kb(meminfo, "Inactive(file)", &f.inactive_bytes) < 0)
        f.inactive_bytes = 0;
    if (rooted_read(root_fd, "/proc/vmstat", MEMINFO_SIZE_MAX, &vmstat, NULL) >= 0) {
        f.evicted_bytes = find_count(vmstat, "pgsteal_file") * page;
        f.refaulted_bytes = find_count(vmstat, "workingset_refault_file") * page;
    }
    if (!find_group(root_fd, group))
        group[0] = 0;
    for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
        _cleanup_free_ char *stat = NULL;
        uint64_t limit;

        *end = 0;
        limit = MIN(read_limit(root_fd, group, "memory.max"),
                    read_limit(root_fd, group, "memory.high"));
        if (limit < least && read_group(root_fd, group, "memory.stat", &stat) >= 0) {
            least = limit;
            cache_facts_apply_group(stat, &f);
        }
    }
    *ret = f;
    return 0;
}

bool memory_facts_are_short(const MemoryFacts *m)
{
    return m->available_bytes > 0 &&
           m->available_bytes < MIN(m->total_bytes / 20, MEMORY_SHORT_BYTES);
}
