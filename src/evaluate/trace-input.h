/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes the simulator's input from recorded traces. Each trace is a session. The sessions follow
 * one another on one clock, and each has the wall clock of its beginning. At the level of
 * applications, items are applications that start and exit. They consist of the files that they
 * access. At the level of files, items are files, and every open and every exec is an access. An
 * object is as large as the largest resident part of its file in any trace, or as the whole file if
 * residency is not known. Pure. */

#include "evaluate/simulate.h"
#include "trace/trace.h"

/* Upper bound of the sum of the durations of all traces. */
#define TRACE_INPUT_TIME_MAX (USEC_INFINITY / 4)

typedef enum TraceLevel {
    TRACE_LEVEL_APPLICATIONS,
    TRACE_LEVEL_FILES,
    _TRACE_LEVEL_MAX,
    _TRACE_LEVEL_INVALID = -EINVAL,
} TraceLevel;

typedef struct TraceInput TraceInput;

/* Creates an input without traces. Returns 0, -EINVAL, -ENOMEM. */
int trace_input_new(TraceLevel level, TraceInput **ret);
TraceInput *trace_input_free(TraceInput *t);
DEFINE_CLEANUP(TraceInput *, trace_input_free);
#define _cleanup_trace_input_ _cleanup_(trace_input_freep)

/* Adds a trace after the earlier ones. The caller may free it afterwards. Events are put in the
 * order of time; times beyond the end of the trace count as its end. Returns 0, -EBADMSG (an index
 * is out of range), -E2BIG (TRACE_INPUT_TIME_MAX; PREDICTOR_ITEMS_MAX), -ENOMEM; after a failure
 * `t` must be freed. */
int trace_input_add(TraceInput *t, const Trace *trace);

/* Writes everything added so far into an empty input. Returns 0, -E2BIG, -ENOMEM. */
int trace_input_finish(const TraceInput *t, SimulateInput *ret);
