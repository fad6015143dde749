/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads facts about processes from /proc. Looks up no path on a filesystem that may hang (network,
 * FUSE, autofs): the recorder has one thread, and it must not wait for a server. */

#include "base/macros.h"

typedef struct ProcReader ProcReader;

/* 0, -ENOMEM, or the error of opening /proc/self/mountinfo. */
int proc_reader_new(ProcReader **ret);
ProcReader *proc_reader_free(ProcReader *x);

typedef struct ProcFacts {
    char exe[4096];   /* "" for kernel threads, if it may not be read, and if this path is another
                         file for us (another mount namespace) */
    uint64_t exe_dev; /* st_dev of it, 0 if unknown */
    bool remote;      /* it lies on a filesystem that may hang, so the path must not be looked up */
    uint32_t parent;
    uint32_t uid;
} ProcFacts;

/* 0, -ESRCH (the process is gone), or a negative errno. */
int proc_facts_read(ProcReader *x, uint32_t pid, ProcFacts *ret);

/* Calls `each` for every process. 0, or the first negative return of `each`. */
int proc_scan(ProcReader *x, int (*each)(uint32_t pid, const ProcFacts *facts, void *arg),
              void *arg);
