/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What headstart-replay says: one line, or JSON by printf (json-c would be a library). */

#include "replay/executor.h"

typedef enum ReplayOutcome {
    REPLAY_OUTCOME_DONE,
    REPLAY_OUTCOME_RUNNING,  /* not over yet: what was done so far */
    REPLAY_OUTCOME_STOPPED,  /* told to stop before all was done */
    REPLAY_OUTCOME_CONTROL,  /* nothing was done: a control session */
    REPLAY_OUTCOME_DISABLED, /* nothing was done: headstart=0 on the kernel command line */
    REPLAY_OUTCOME_OFF,      /* nothing was done: the policy is off */
    REPLAY_OUTCOME_DRY_RUN,  /* nothing was done: this is what would be */
    _REPLAY_OUTCOME_MAX,
    _REPLAY_OUTCOME_INVALID = -EINVAL,
} ReplayOutcome;

typedef struct Report {
    const char *pack;   /* its path */
    const char *status; /* where report_save() writes it; NULL: nowhere */
    Stage stage;
    Policy policy;
    ReplayOutcome outcome;
    usec_t start, start_realtime, start_boottime, duration_usec; /* start: CLOCK_MONOTONIC */
    ReplayResult result;
} Report;

/* It starts now, after what was waited for. */
void report_start(Report *r);

/* One line, without its end; the caller frees it. NULL: out of memory. */
char *report_to_text(const Report *r);

/* One JSON object in one line, without its end; the caller frees it. NULL: out of memory. Bytes of
 * the path that are not printable ASCII, and "%", are written as %XX. */
char *report_to_json(const Report *r);

/* Writes it as JSON to its status file, whose directory is made if need be. 0 or a negative errno.
 */
int report_save(const Report *r);

/* The operation as the dry run shows it, in one line; the caller frees it. NULL: out of memory. */
char *operation_to_text(const Pack *p, const MountedTable *t, const Operation *o);
char *operation_to_json(const Pack *p, const MountedTable *t, const Operation *o);
