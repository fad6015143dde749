/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The report of headstart-replay: one line of text, or JSON that is written with printf to avoid
 * linking json-c. */

#include "execute/executor.h"
#include "replay/hold.h"

typedef enum ReplayOutcome {
    REPLAY_OUTCOME_DONE,
    REPLAY_OUTCOME_RUNNING,  /* not finished: the counts so far */
    REPLAY_OUTCOME_STOPPED,  /* stopped before everything was done */
    REPLAY_OUTCOME_CONTROL,  /* nothing was done: a control session */
    REPLAY_OUTCOME_DISABLED, /* nothing was done: headstart=0 on the kernel command line */
    REPLAY_OUTCOME_OFF,      /* nothing was done: the policy is off */
    REPLAY_OUTCOME_DRY_RUN,  /* nothing was done: the counts show what would be done */
    REPLAY_OUTCOME_LOADING,  /* not begun: the pack is being read */
    REPLAY_OUTCOME_FAILED,   /* nothing was done: the pack could not be read or used */
    _REPLAY_OUTCOME_MAX,
    _REPLAY_OUTCOME_INVALID = -EINVAL,
} ReplayOutcome;

typedef struct Report {
    const char *pack;   /* its path; NULL: no pack was loaded, so policy and reason are not known */
    uint64_t checksum;  /* of the pack */
    const char *status; /* where report_save() writes it; NULL: nowhere */
    Stage stage;
    Policy policy;
    PolicyReason reason; /* why the planner, or an option of headstart-replay, set the policy */
    ReplayOutcome outcome;
    Hold hold; /* hold.start is the start of the replay */
    usec_t start_realtime, start_boottime, duration_usec;
    ReplayResult result;
    HoldEnd hold_end;
    usec_t held_usec; /* how long the boot was held, by headstart-init as well; 0 with HOLD_END_NONE
                       */
} Report;

/* Sets the start times to now, and hold.from as well. A wait before this call therefore does not
 * count. */
void report_start(Report *x);

/* Notes the end of the time for which the boot was held. Later calls are ignored. */
void report_hold_ended(Report *x, HoldEnd end);

/* Returns one line without a newline; the caller frees it. NULL: out of memory. */
char *report_to_text(const Report *x);

/* Returns one JSON object in one line without a newline; the caller frees it. NULL: out of memory.
 * Bytes of the path that are not printable ASCII, and "%", are written as %XX. */
char *report_to_json(const Report *x);

/* Sends `text`, the report in one line, to the journal with the report's fields. Sends a second
 * entry if the boot continued because of the deadline, or because the pack was not read in time.
 * Returns false if standard error is not the journal, or the entry was not sent: then the caller
 * prints the line. */
bool report_to_journal(const Report *x, const char *text);

/* Writes the report as JSON to its status file and creates the directory of that file if needed.
 * Returns 0 or a negative errno. */
int report_save(const Report *x);

/* The state of another replay of this boot, according to its report. */
typedef enum EarlierReplay {
    EARLIER_REPLAY_NONE,    /* it did not read all of the pack, or read another one */
    EARLIER_REPLAY_RUNNING, /* it has not ended */
    EARLIER_REPLAY_DONE,    /* it has read all that it could open */
} EarlierReplay;

/* Reads the report in the file `status`, which report_save() has written, and returns whether the
 * replay that wrote it reads or has read the pack. EARLIER_REPLAY_NONE if the file cannot be read.
 */
EarlierReplay report_read_earlier(const char *status, const Pack *p);

/* Return the operation in one line for a dry run; the caller frees it. NULL: out of memory. */
char *operation_to_text(const Pack *p, const MountedTable *t, const Operation *o);
char *operation_to_json(const Pack *p, const MountedTable *t, const Operation *o);
