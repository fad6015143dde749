/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the judge reads from recorded traces: each trace is a session, one after the other on one
 * clock (the time between them does not count); with each comes what the wall clock said when it
 * began. At the level of applications, items are applications that start and exit, made of the
 * files they open; at the level of files, items are files, and every open is an access. An object
 * is as large as what was resident of its file (the whole file where residency is not known). Pure.
 */

#include "evaluate/simulate.h"
#include "trace/trace.h"

/* All traces together last at most so long. */
#define TRACE_INPUT_TIME_MAX (USEC_INFINITY / 4)

typedef enum TraceLevel {
    TRACE_LEVEL_APPLICATIONS,
    TRACE_LEVEL_FILES,
    _TRACE_LEVEL_MAX,
    _TRACE_LEVEL_INVALID = -EINVAL,
} TraceLevel;

typedef struct TraceInput TraceInput;

/* 0, -EINVAL, -ENOMEM. */
int trace_input_new(TraceLevel level, TraceInput **ret);
TraceInput *trace_input_free(TraceInput *t);
DEFINE_CLEANUP(TraceInput *, trace_input_free);
#define _cleanup_trace_input_ _cleanup_(trace_input_freep)

/* Adds a trace, later than those added before; it is not needed afterwards. Whatever its times say,
 * events come out in order: starts beyond the end count as the end. Borrowed paths are copied. 0,
 * -EBADMSG (indexes that lead nowhere), -E2BIG (TRACE_INPUT_TIME_MAX; PREDICTOR_ITEMS_MAX),
 * -ENOMEM; after a failure free it. */
int trace_input_add(TraceInput *t, const Trace *trace);

/* Everything added so far, into an empty input. 0, -E2BIG, -ENOMEM. */
int trace_input_finish(const TraceInput *t, SimulateInput *ret);

/* Path of an item; NULL if there is none. */
const char *trace_input_name(const TraceInput *t, uint32_t item);
