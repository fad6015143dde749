/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The prefetcher: the session cycle in the daemon's event loop. Starts and exits of applications go
 * from the recorder into the cycle (session/cycle.h). The cycle's requests go to the prefetch
 * thread (session/prefetch-thread.h). SIGHUP makes the prefetcher read configuration and model
 * again. SIGUSR2 makes the prefetcher write session.json to the runtime directory (without one, to
 * the state directory). Both signals must be blocked. */

#include "daemon/session-results.h"
#include "record/recorder.h"

/* All strings are borrowed. */
typedef struct PrefetcherOptions {
    const char *root;      /* as the recorder's; the configuration lies below it, too */
    const char *state;     /* directory of model.json */
    const char *run_dir;   /* may be NULL */
    usec_t known_boottime; /* CLOCK_BOOTTIME: an earlier prefetcher of this session has learned from
                              what started before; 0: there was none */
} PrefetcherOptions;

typedef struct Prefetcher Prefetcher;

/* Begins a session of user `uid`; UID_INVALID: of several users or an unknown one. Returns 0, or a
 * negative errno that was logged; recording then continues without a prefetcher. */
int prefetcher_new(const PrefetcherOptions *o, Recorder *recorder, sd_event *event, uint32_t uid,
                   Prefetcher **ret);

/* The session is not recorded any more: no start is a control start from now on. NULL is allowed.
 */
void prefetcher_end_recording(Prefetcher *p);

/* Moves the results of this prefetcher so far to *ret, which the caller frees with
 * session_results_done(). `uid`: the user of the trace; UID_INVALID: any user. If p is NULL, they
 * are empty. */
void prefetcher_take_results(Prefetcher *p, uint32_t uid, SessionResults *ret);

/* Ends the session: saves what was learned, and frees the prefetcher. NULL is allowed. Returns
 * NULL. */
Prefetcher *prefetcher_end(Prefetcher *p);
