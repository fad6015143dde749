/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the prefetchers of a session have done, as far as its trace and its history contain it. A
 * session has several prefetchers, one after the other, if its users change. Pure. */

#include "session/launch-log.h"
#include "session/launch-use.h"

/* `flags` are TraceFlags that are added to the trace. TRACE_REPLAYED: something was read, so
 * residency does not show what the session needed. TRACE_CONTROL: the user of the trace has had a
 * control start. TRACE_FOLLOWED: the cycle has learned from starts and exits. */
typedef struct SessionResults {
    unsigned flags;
    usec_t launches_since; /* CLOCK_REALTIME: starts of applications are replayed since then;
                              USEC_INFINITY: they are not */
    LaunchLog launch_log;
    LaunchUses launch_uses;
} SessionResults;

#define SESSION_RESULTS_EMPTY ((SessionResults){.launches_since = USEC_INFINITY})

/* Adds the results of the next prefetcher, and leaves `from` empty. The control starts beyond
 * LAUNCH_USES_MAX are dropped. If the next prefetcher does not replay starts, `launches_since`
 * becomes USEC_INFINITY, because a later start must not count as replayed. */
void session_results_add(SessionResults *to, SessionResults *from);

/* Frees the results and leaves them empty. */
void session_results_done(SessionResults *r);
