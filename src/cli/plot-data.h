/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Timelines of recorded stages, from the files of the state directory and of /run. */

#include "cli/cli.h"
#include "report/timeline.h"
#include "trace/trace.h"

/* Selects one of the traces of a stage. */
typedef enum TraceChoice {
    TRACE_NEWEST,
    TRACE_NEWEST_REPLAYED,
    TRACE_NEWEST_CONTROL, /* the newest one of a session without replay */
} TraceChoice;

/* Reads the newest trace of that kind. Traces that cannot be read are ignored. 0, -ENOENT (there is
 * none), or -ENOMEM. The function logs nothing. */
int plot_find_trace(int state_fd, Stage stage, TraceChoice choice, Trace **ret);

/* Makes the timeline of a trace. Files whose place is not found within `timeout` have none. *ret is
 * zeroed. 0 or -ENOMEM. The function logs nothing. */
int plot_make_timeline(const Context *c, int state_fd, const Trace *t, usec_t timeout,
                       Timeline *ret);
