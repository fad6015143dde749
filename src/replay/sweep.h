/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Replays a pack from beginning to end: holds the boot under `gate`, reacts to signals, and replays
 * filesystems that are mounted later. The calling thread does no disk I/O: it waits for the
 * executor, the end of the hold, mounts and signals. SIGTERM and SIGINT end the replay at once,
 * even while operations are under way. SIGUSR1 means that a login has begun and needs the remaining
 * data now. */

#include "replay/report.h"

/* The longest wait for mounts. */
#define MOUNT_WAIT_MAX (300 * USEC_PER_SEC)

/* The longest replay. */
#define TIMEOUT_MAX USEC_PER_HOUR

typedef struct SweepOptions {
    const char
            *root; /* absolute, without symlinks: only filesystems mounted at or below it count */
    Policy policy;
    IoClass io_class;
    usec_t mount_wait; /* time from the start during which later mounts are replayed, too */
    usec_t timeout;    /* time from the start after which the replay ends in any case; at most
                          TIMEOUT_MAX */
    bool wait;         /* the replay is done only when everything is resident */
    bool hurry;        /* a login has begun */
    bool ready;        /* READY=1 was sent already, so there is no gate */
    EarlierPack earlier[REPLAY_EARLIER_MAX];
    const char *marker; /* marker.h: removed if a filesystem is missing; NULL: none */
} SweepOptions;

/* Holds the boot as long as `p` and report->hold allow.
 *
 * Writes outcome, result and duration (of the sweeps, without the waits between them) into the
 * report. Saves the report when the sweep begins, when the hold ends before the sweep, before it
 * waits for mounts, and when it fails. After the outcome REPLAY_OUTCOME_STOPPED threads may still
 * run, and the process must end with _exit(2). Returns 0; otherwise, after one line was logged,
 * -ENOMEM or the negative errno of starting threads or of reading the mount table. */
int sweep(const Pack *p, const SweepOptions *o, Report *report);
