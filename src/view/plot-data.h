/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes timelines of recorded stages from files of the state directory and of /run and from the
 * journal. */

#include "command/cli.h"
#include "report/timeline.h"
#include "trace/trace.h"

/* Selects one of the traces of a stage. */
typedef enum TraceChoice {
    TRACE_NEWEST,
    TRACE_NEWEST_REPLAYED,
    TRACE_NEWEST_CONTROL, /* the newest trace of a session without replay. In an exact recording
                             read-ahead is lower, so its times are not those without headstart */
} TraceChoice;

/* Reads the newest trace of the stage that `choice` allows. Traces that cannot be read are ignored.
 * Returns 0, -ENOENT (there is none), -ENOMEM, or the error of state_list_traces(). The function
 * logs nothing. */
int plot_find_trace(int state_fd, Stage stage, TraceChoice choice, Trace **ret);

/* Finds the newest other trace without replay that has the stage and the user of `t`. Returns as
 * plot_find_trace() does. */
int plot_find_control(int state_fd, const Trace *t, Trace **ret);

/* One start of an application in a trace. */
typedef struct PlotLaunch {
    Trace *trace;
    uint32_t application; /* index in the trace */
    usec_t at;            /* since the start of the stage */
} PlotLaunch;

void plot_launch_done(PlotLaunch *l);

/* Finds the last start of an application in the newest trace of a login or a session that has such
 * a start. `name` is the path of the application or the last part of this path. If `name` is NULL,
 * the application with the most accesses in the newest trace with a start is taken. `choice`
 * decides whether only starts with replay of the launch set count, or only starts without. If
 * `other` is not NULL, only other starts of its user count. Returns 0, -ENOENT, -ENOMEM, or the
 * error of state_list_traces(). */
int plot_find_launch(int state_fd, const char *name, TraceChoice choice, const PlotLaunch *other,
                     PlotLaunch *ret);

/* Finds the last start in `t` alone, replayed or not. The caller keeps `t`. Returns 0, -ENOENT, or
 * -ENOMEM. */
int plot_find_launch_in(const Trace *t, const char *name, uint32_t *ret_application,
                        usec_t *ret_at);

/* Makes the timeline of a trace. Files whose place is not found within `timeout` have no place in
 * the timeline, and units that are not found within `timeout` are left out. On failure *ret is
 * untouched. Returns 0 or -ENOMEM. The function logs nothing. */
int plot_make_timeline(const Context *c, int state_fd, const Trace *t, usec_t timeout,
                       Timeline *ret);

/* Makes the timeline of one start of an application. It shows what the application opened. In a
 * session it also shows the accesses of other applications that started during this start. The
 * start ends when these applications open nothing for LAUNCH_GAP_USEC, or after LAUNCH_MAX_USEC.
 * `timeout`, *ret and the results are as for plot_make_timeline(). */
int plot_make_launch(const Context *c, int state_fd, const PlotLaunch *l, usec_t timeout,
                     Timeline *ret);
