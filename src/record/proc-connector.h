/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* fork, exec, exit and uid changes as the kernel's process connector reports them (netlink;
 * CAP_NET_ADMIN, the initial pid namespace), and what /proc says of a process. */

#include "record/processes.h"

/* A non-blocking descriptor, or -EPERM, -EPROTONOSUPPORT, … */
int proc_connector_open(void);

/* Hands everything that is queued to the table; instants are `boottime - start_boottime`, from the
 * events' own time stamps. The number of events, -ENOMEM, or a negative errno. *lost is raised when
 * the kernel dropped some. */
int proc_connector_drain(int fd, ProcessTable *t, usec_t start_boottime, uint64_t *lost);

/* What /proc says of one process. */
typedef struct ProcFacts {
    char exe[4096];   /* "" for kernel threads, where it may not be read, and where this path is
                       * another file as we see it (another mount namespace) */
    uint64_t exe_dev; /* st_dev of it, 0 if unknown */
    uint32_t parent;
    uint32_t uid;
} ProcFacts;

/* 0, -ESRCH (gone), or a negative errno. */
int proc_facts_read(uint32_t pid, ProcFacts *ret);

/* Calls `each` for every process there is. 0, or the first negative return of `each`. */
int proc_scan(int (*each)(uint32_t pid, const ProcFacts *facts, void *arg), void *arg);
