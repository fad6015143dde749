/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds out which pages of which files applications touch when they start. Residency shows this
 * only for files that nobody has used before: the pages of a shared library that are in memory may
 * have been read for another application. Therefore the page tables of a process that runs an
 * application are read some seconds after its start (observe/page-reader.h, observe/mapping.h).
 * They show pages of mapped files only. Reading them needs CAP_SYS_PTRACE; without it nothing is
 * found. */

#include "observe/page-reader.h"
#include "observe/processes.h"
#include "observe/user-shares.h"

/* The page tables of a process are read when it is TOUCHED_FIRST_USEC old, and then in intervals,
 * TOUCHED_LOOKS times in all. The last look is shortly before LAUNCH_MAX_USEC, because a start from
 * a slow disk takes that long. The earlier looks find the pages of an application that its user
 * closes as soon as it has started. A process that has not changed since its last look is not read
 * again (observe/page-reader.h). */
#define TOUCHED_FIRST_USEC    (3 * USEC_PER_SEC)
#define TOUCHED_INTERVAL_USEC (2500 * USEC_PER_MSEC)
#define TOUCHED_LOOKS         11U

/* Zeroed is valid: a stage that begins. */
typedef struct Touched {
    TouchedFile *files; /* one for each run and file, by serial, dev, inode */
    size_t n, allocated;
    uint64_t next[TOUCHED_LOOKS]; /* for each look: the first serial that was not considered */
    usec_t from; /* on the clock of the runs: what began then or before belongs to no stage or to
                    an earlier one, and is left out */
} Touched;

void touched_done(Touched *t);

/* Requests the pages of the processes that are old enough for their next look, and takes what was
 * found since the last call. `runs` are all runs, in rising order of their serials; `now` is on
 * their clock. The user of a process is charged for the time and for the ranges. Returns 0 or
 * -ENOMEM. */
int touched_run(Touched *t, PageReader *reader, const ProcessRun *runs, size_t n_runs,
                UserShares *shares, usec_t now);
