/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The starts of applications in a session: how long each took, and whether the launch set of the
 * application was replayed. Each start is one line of STATE/launches.jsonl (docs/formats.md). Pure:
 * text in memory. */

#include "measure/session-record.h"
#include "trace/trace.h"

/* A start that opened fewer files is not recorded: it hardly waits for the disk. */
#define LAUNCH_FILES_MIN 20U
/* The most starts that one session adds: those that opened the most files. */
#define LAUNCHES_PER_SESSION 32U

#define LAUNCH_APPLICATION_MAX 512U /* bytes of its path, NUL included */

typedef enum LaunchReplayed {
    LAUNCH_NOT_REPLAYED, /* the application had no launch set, the set's policy is `off`, or
                            executions were not watched */
    LAUNCH_CONTROL,      /* not replayed, because the session is a control session */
    LAUNCH_REPLAYED,
    _LAUNCH_REPLAYED_MAX,
    _LAUNCH_REPLAYED_INVALID = -EINVAL,
} LaunchReplayed;

typedef struct LaunchRecord {
    char application[LAUNCH_APPLICATION_MAX]; /* absolute path */
    uint32_t uid;
    usec_t start_realtime_usec;
    usec_t took_usec; /* until the last file was opened */
    uint64_t files;   /* opened by the application during its start */
    LaunchReplayed replayed;
    Policy policy;   /* of the launch set; _POLICY_INVALID: there is no set, or it is not known */
    PackUsage usage; /* of the launch set; USAGE_NONE: not known */
    /* Begin and end of the replay of the set, since the start of the application, and what it read.
     * An end of 0: not known, or the set was not read. */
    usec_t replay_begin_usec, replay_end_usec;
    uint64_t replay_bytes;
    char kernel[64];            /* "": not known */
    uint32_t trace_application; /* index in the trace; not stored */
    char boot_id[33];           /* "": not known */
    usec_t packages_usec; /* wall clock: when the package database last changed; 0 or USEC_INFINITY:
                             not known, not stored */
} LaunchRecord;

typedef struct LaunchRecords {
    LaunchRecord *items; /* oldest first */
    size_t n, allocated;
    size_t n_bad; /* lines that cannot be used */
} LaunchRecords;

void launch_records_done(LaunchRecords *l);
#define _cleanup_launch_records_ _cleanup_(launch_records_done)

/* Finds the starts in the trace of a session. The other stages have no such starts, because in them
 * everything starts at the same time. All records are LAUNCH_NOT_REPLAYED and have no set. Pure.
 * Returns 0 or -ENOMEM. */
int launch_records_from_trace(const Trace *t, LaunchRecords *ret);

/* Writes the record as one line with a newline. The caller frees *ret. Returns 0 or -ENOMEM. */
int launch_record_to_line(const LaunchRecord *l, char **ret, size_t *ret_size);

/* Reads a line (without its newline). Unknown members are ignored. Returns 0, -EBADMSG, -ENOMEM. */
int launch_record_from_line(const char *line, size_t size, LaunchRecord *ret);

const char *launch_replayed_to_string(LaunchReplayed r);
