/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Traces as files below a state directory. */

#include "trace/trace.h"

/* Writes the trace to STATE/traces/YYYYMMDDTHHMMSS-STAGE.json (UTC of the stage's start; -2, -3 …
 * if that is taken), creating the directories (0700) as needed. The caller frees *ret_path. 0, or a
 * negative errno; then nothing was changed. */
int trace_store(const char *state_dir, const Trace *t, char **ret_path);

/* What tells one trace from all others. */
typedef struct TraceIdentity {
    Stage stage;
    char boot_id[64];
    usec_t start_realtime;
} TraceIdentity;

/* Reads that from the head of a trace's file, as trace_store() writes it. -ENODATA if it is not
 * found there (the file may be a good trace all the same), or the error of reading. */
int trace_peek(int dir_fd, const char *name, TraceIdentity *ret);

/* Reads a trace. -EBADMSG and the others of trace_from_json() with *ret_error; errors of reading
 * the file without. */
int trace_load(const char *path, Trace **ret, char **ret_error);
