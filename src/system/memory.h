/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The memory of the machine, as /proc/meminfo reports it, and the memory that the control groups of
 * this process leave to it. */

#include "base/macros.h"

typedef struct MemoryFacts {
    uint64_t total_bytes;
    uint64_t free_bytes;
    uint64_t available_bytes; /* 0: not reported (before Linux 3.14) */
    uint64_t cached_bytes;
} MemoryFacts;

/* Parses the text of /proc/meminfo. Returns 0, or -EBADMSG if MemTotal or MemFree is missing. */
int memory_facts_parse(const char *meminfo, MemoryFacts *ret);

/* Reads /proc/meminfo below root_fd (AT_FDCWD: "/"). Returns 0, -EBADMSG, or another negative
 * errno. */
int memory_facts_read(int root_fd, MemoryFacts *ret);

/* Reads the memory that this process may use: the machine's, reduced to the limits (memory.max and
 * memory.high) of its control group and of the groups above. The page cache that a process fills
 * is charged to its group, and the kernel reclaims it at the limit. Control groups of version 1 are
 * not read. Returns what memory_facts_read() returns. */
int memory_facts_read_own(int root_fd, MemoryFacts *ret);

/* Memory is not short if more than this is available. */
#define MEMORY_SHORT_BYTES (UINT64_C(256) << 20)

/* Returns true if so little memory is available that reading ahead would evict what is in use: less
 * than a twentieth of all memory, and less than MEMORY_SHORT_BYTES. If the available memory is not
 * known, the memory does not count as short. */
bool memory_facts_are_short(const MemoryFacts *m);

/* Counters of file pages in the page cache that no process has used yet. */
typedef struct CacheFacts {
    uint64_t inactive_bytes;                 /* size of the inactive list of file pages */
    uint64_t evicted_bytes, refaulted_bytes; /* since the machine started or the group was made */
} CacheFacts;

/* Replaces the facts by those of a control group. `stat` is the text of its memory.stat. Version 1
 * does not count evicted pages, so that evicted_bytes stays. */
void cache_facts_apply_group(const char *stat, CacheFacts *f);

/* Reads the facts of the machine (/proc/meminfo, /proc/vmstat), or of the control group of this
 * process, or above it, that has the lowest limit. Counters that the kernel does not have are 0.
 * Returns 0, or the negative errno of reading /proc/meminfo. */
int cache_facts_read_own(int root_fd, CacheFacts *ret);
