/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The prefetcher: the session cycle in the daemon's event loop. Starts and exits of applications go
 * from the recorder into the cycle (session/cycle.h). The cycle's requests go to the prefetch
 * thread (session/prefetch-thread.h). SIGHUP makes the prefetcher read configuration and model
 * again. SIGUSR2 makes the prefetcher write session.json to the runtime directory (without one, to
 * the state directory). Both signals must be blocked. */

#include "record/recorder.h"
#include "session/launch-log.h"
#include "session/launch-use.h"

/* All strings are borrowed. */
typedef struct PrefetcherOptions {
    const char *root;    /* as the recorder's; the configuration lies below it, too */
    const char *state;   /* directory of model.json */
    const char *run_dir; /* may be NULL */
} PrefetcherOptions;

typedef struct Prefetcher Prefetcher;

/* Begins a session of user `uid`; UID_INVALID: of several users or an unknown one. Returns 0, or a
 * negative errno that was logged; recording then continues without a prefetcher. */
int prefetcher_new(const PrefetcherOptions *o, Recorder *recorder, sd_event *event, uint32_t uid,
                   Prefetcher **ret);

/* Returns the TraceFlags that the prefetcher adds to the session's trace, or 0 if p is NULL.
 * TRACE_REPLAYED: it has read something, so residency does not show what the session needed.
 * TRACE_CONTROL: the user of the trace (UID_INVALID: any user) has had a control start.
 * TRACE_FOLLOWED: it has learned from starts and exits. */
unsigned prefetcher_trace_flags(const Prefetcher *p, uint32_t uid);

/* The session is not recorded any more: no start is a control start from now on. NULL is allowed.
 */
void prefetcher_end_recording(Prefetcher *p);

/* Returns the time (CLOCK_REALTIME) from which the prefetcher replays starts of applications, or
 * USEC_INFINITY if it does not. */
usec_t prefetcher_launches_since(const Prefetcher *p);

/* Copies the ended replays of launch sets in this session to *ret. If p is NULL, there are none. */
void prefetcher_launch_log(const Prefetcher *p, LaunchLog *ret);

/* Moves the observations of control starts to *ret, which the caller frees with launch_uses_done().
 * If p is NULL, there are none. */
void prefetcher_take_launch_uses(Prefetcher *p, LaunchUses *ret);

/* Ends the session: saves what was learned, and frees the prefetcher. NULL is allowed. Returns
 * NULL. */
Prefetcher *prefetcher_end(Prefetcher *p);
