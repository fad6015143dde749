/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A pack from first to last: when it begins, how long it holds the boot, what hurries or ends it,
 * and what is mounted only later. The thread that calls it does no disk I/O: it waits for the
 * executor, for the gate's deadline, for mounts and for signals. SIGTERM and SIGINT end it at once,
 * whatever is under way; SIGUSR1 says that a login has begun: what is left is needed now. */

#include "replay/report.h"

/* A gate is never held longer, whatever a pack says: the longest that headstart.conf(5) allows. */
#define GATE_DEADLINE_MAX (60 * USEC_PER_SEC)

/* Longer than that nothing is quiet. */
#define SETTLE_MAX (300 * USEC_PER_SEC)

/* The most that is waited for filesystems. */
#define MOUNT_WAIT_MAX (300 * USEC_PER_SEC)

/* Longer than that nobody waits for what is left. */
#define TIMEOUT_MAX USEC_PER_HOUR

typedef struct SweepOptions {
    const char *root; /* absolute, without symlinks: only filesystems mounted there count */
    Policy policy;
    IoClass io_class;
    usec_t settle;     /* begin when it is quiet, after so long at the latest; 0: at once */
    usec_t mount_wait; /* so long from the beginning on, what is mounted later is replayed too */
    usec_t timeout;    /* what is not there after so long is left; at most TIMEOUT_MAX */
    bool wait;         /* not done before all is resident */
    bool hurry;        /* a login has begun */
    bool ready;        /* the manager was told so: no gate */
} SweepOptions;

/* Fills in the report's outcome, its result, and its duration: that of the sweeps, without waiting
 * in between; saves it when it begins, waits for mounts, and fails. With the outcome
 * REPLAY_OUTCOME_STOPPED threads were left behind: the process must end by _exit(2). 0, or, after
 * one line was logged, -ENOMEM or the negative errno of starting threads or of reading the mount
 * table. */
int sweep(const Pack *p, const SweepOptions *o, Report *report);
