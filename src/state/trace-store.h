/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Traces as files of the state directory. */

#include "trace/trace.h"

/* The ending that learning adds to the file name of a trace that must not be learned
 * (model_trace_unfit()). Such a trace is not read again. */
#define TRACE_SKIPPED_SUFFIX ".skipped"

/* Writes the trace to STATE/traces/YYYYMMDDTHHMMSS-STAGE.json (UTC of the stage's start; if that
 * name is taken, -2, -3 … follows STAGE), and creates the directories (0700) as needed. Then
 * applies the quotas (state_apply_quotas()) and ignores their errors. The caller frees *ret_path.
 * Returns 0, or a negative errno, for example of atomic_file_write(). */
int trace_store(const char *state_dir, const Trace *t, char **ret_path);

/* The facts that identify a trace. */
typedef struct TraceIdentity {
    Stage stage;
    char boot_id[64];
    uint32_t uid; /* UID_INVALID for a boot, or if it is not found */
    usec_t start_realtime;
    usec_t duration;     /* of the stage; 0 if it is not found */
    bool without_replay; /* read-ahead was not lowered, and either no pack was replayed, or it is a
                            session with a control start; false if it is not found */
} TraceIdentity;

/* Reads the identity from the head of a trace's file, as trace_store() writes it. Returns 0,
 * -ENODATA if the head does not contain the identity (the file may still be a valid trace), or the
 * error of reading. */
int trace_peek(int dir_fd, const char *name, TraceIdentity *ret);

typedef struct TraceName {
    char *name; /* YYYYMMDDTHHMMSS-STAGE[-N].json */
    Stage stage;
    unsigned number; /* N; 1 if there is none */
} TraceName;

typedef struct TraceNames {
    TraceName *items; /* oldest first */
    size_t n, allocated;
} TraceNames;

void trace_names_done(TraceNames *t);
#define _cleanup_trace_names_ _cleanup_(trace_names_done)

/* Lists the traces in STATE/traces by name. Files with other names are left out. A missing
 * directory counts as empty. Returns 0, -ENOMEM or the error of reading it. */
int state_list_traces(int state_fd, TraceNames *ret);

/* Reads a trace of the directory `dir_fd`. If the content is bad, *ret_error becomes the reason,
 * which the caller frees. If reading fails, *ret_error is untouched. Returns 0, the result of
 * trace_from_json(), or the error of reading. The function logs nothing. */
int state_read_trace(int dir_fd, const char *name, Trace **ret, char **ret_error);

/* Parses a trace's file name. Pure. Returns 0 or -EINVAL. */
int trace_name_parse(const char *name, Stage *ret_stage, unsigned *ret_number);

/* Removes files of STATE/traces that exceed the quotas of retention.h as of `now` (wall clock), and
 * markers (attempt.h) whose file is gone. *ret_removed (may be NULL) becomes the number of removed
 * files, without markers. Returns 0, -ENOMEM, or the error of reading the directory or the
 * attributes of a file. It is no error if a file cannot be removed. */
int state_apply_quotas(int state_fd, usec_t now, size_t *ret_removed);
