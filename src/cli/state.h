/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The state directory: what lies where in it. */

#include "base/vocabulary.h"
#include "cli/cli.h"
#include "model/model.h"
#include "trace/trace.h"

#define STATE_TRACES   "traces"
#define STATE_MODEL    "model.json"
#define STATE_RERECORD "rerecord-"      /* and a stage: {"exact":bool}, docs/formats.md */
#define STATE_REFRESH  "refresh-wanted" /* packages have changed (hooks/hook) */

/* Traces kept of each stage. */
#define STATE_TRACES_KEPT 32

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

/* Opens the state directory; with `create` it is made (0700) if missing. 0; -ENOENT without a word
 * if it is missing and not to be made; other errors are reported. */
int state_open(const Context *c, bool create, int *ret_fd);

/* The traces in STATE/traces by their names; what is named otherwise is left out. A missing
 * directory has none. 0, -ENOMEM or the error of reading it (not reported). */
int state_list_traces(int state_fd, TraceNames *ret);

/* Reads a trace of the directory `dir_fd`. *ret_error: what is wrong with the file, or NULL; the
 * caller frees it. 0, what trace_from_json() returns, or the error of reading. Nothing is
 * reported. */
int state_read_trace(int dir_fd, const char *name, Trace **ret, char **ret_error);

/* Parses a trace's file name. Pure. 0 or -EINVAL. */
int trace_name_parse(const char *name, Stage *ret_stage, unsigned *ret_number);

/* Keeps other learners and planners out until `state_fd` is closed. Waits for them, five seconds at
 * most, or as a service's (--quiet) four minutes: at idle priority they may take long. 0, or an
 * error that was reported. */
int state_lock(const Context *c, int state_fd);

/* Reads and parses STATE/model.json. 0, -ENOENT, what model_from_json() returns (*ret_error: one
 * line, the caller frees it), or the error of reading. Nothing is reported. */
int state_load_model(int state_fd, Model **ret, char **ret_error);

/* Replaces STATE/model.json. 0, or an error that was reported. */
int state_save_model(const Context *c, int state_fd, const Model *m);

/* Writes "rerecord-STAGE" into the buffer and returns it. */
#define STATE_RERECORD_MAX 32
const char *state_rerecord_name(char buf[STATE_RERECORD_MAX], Stage stage);

/* "boot.pack", "login.pack"; NULL for a stage that has none. */
const char *state_pack_name(Stage stage);
