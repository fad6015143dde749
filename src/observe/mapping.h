/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Interprets /proc/PID/maps and /proc/PID/pagemap (proc_pid_maps(5), proc_pid_pagemap(5)): which
 * pages of a mapped file a process has touched. Pure. */

#include "base/ranges.h"

/* A mapping of a file. */
typedef struct Mapping {
    uint64_t start, end;           /* addresses */
    uint64_t offset;               /* of `start` in the file, in bytes */
    unsigned dev_major, dev_minor; /* of the filesystem, as in mountinfo */
    uint64_t inode;                /* never 0 */
} Mapping;

/* Parses one line of maps, which need not end with a newline. Returns false if the line is
 * malformed, or if its mapping is not one of a file that has a name. Shared memory has none. */
bool mapping_parse(const char *line, Mapping *ret);

/* Parses the lines of maps, and changes `text`. Lines that mapping_parse() refuses are left out.
 * The shortest mappings come first, so that a limit on pages leaves out the longest ones, such as a
 * database. The caller frees *ret, which is NULL if there is no mapping. Returns 0 or -ENOMEM. */
int mapping_parse_all(char *text, Mapping **ret, size_t *ret_n);

/* Adds the pages of the file that are touched to *ret. `entries` are the numbers of pagemap for the
 * pages from the address `at` on. A page is touched if it is in memory, or if it was and has been
 * swapped out, also as a private copy of the file's page. The kernel maps up to 16 resident pages
 * around the page that a process touches, so these count as touched, too. Returns 0 or -ENOMEM. */
int mapping_add_touched(const Mapping *m, uint64_t at, const uint64_t *entries, size_t n,
                        uint64_t page_bytes, RangeSet *ret);
