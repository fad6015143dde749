/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Appends a boot or login, or the starts of applications of a session, to the history
 * (measure/history.h) when its stage has ended. */

#include "daemon/stages.h"
#include "measure/machine-counters.h"
#include "session/launch-log.h"
#include "trace/trace.h"

/* The stage that ended. */
typedef struct EndedStage {
    const char *state;   /* the state directory */
    const char *run_dir; /* where headstart-replay reports; NULL: nowhere */
    int root_fd;
    int system_fd; /* /etc below it has the copies for early boot; AT_FDCWD: the real /etc */
    const Trace *trace;
    BootTimes boot;
    MachineCounters begin, end;
    usec_t end_boottime;
    usec_t settled_ago;    /* StageChange.settled_ago */
    bool requested;        /* `headstart measure` or `headstart rerecord` switched replay off */
    bool exact;            /* an exact recording was requested */
    usec_t launches_since; /* CLOCK_REALTIME: executions have been watched since then;
                              USEC_INFINITY: they are not watched */
    LaunchLog launch_log;
} EndedStage;

/* Appends a boot that was not recorded, because it was over before headstartd started. The line has
 * the times of the system manager, the counters since the start of the kernel, and the flag
 * `light`. Uses only state, root_fd, boot, end and end_boottime of `e`. A failure is reported and
 * has no other effect. */
void session_history_append_light(const EndedStage *e);

/* Appends the stage to the history. A failure is reported and has no other effect. */
void session_history_append(const EndedStage *e);
