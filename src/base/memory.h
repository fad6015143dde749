/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The machine's memory, as /proc/meminfo reports it. */

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
