/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The session cycle in the daemon's event loop: what the recorder tells of applications goes into
 * session/cycle.h, what that requests goes to session/prefetch-thread.h. SIGHUP reads configuration
 * and model anew, SIGUSR2 writes session.json to the runtime directory (without one, to the
 * state's); both must be blocked. */

#include "record/recorder.h"

typedef struct PrefetcherOptions {
    const char *root;    /* as the recorder's; also where the configuration is found */
    const char *state;   /* where model.json is */
    const char *run_dir; /* may be NULL */
} PrefetcherOptions;

typedef struct Prefetcher Prefetcher;

/* A session of that user (UID_INVALID: unknown) begins. Strings are borrowed. 0, or a negative
 * errno that was reported: then there is no cycle, and recording goes on. */
int prefetcher_new(const PrefetcherOptions *o, Recorder *recorder, sd_event *event, uint32_t uid,
                   Prefetcher **ret);

/* What the session's trace must say (TraceFlags): TRACE_REPLAYED if anything was read ahead (then
 * residency does not tell what the session needed), TRACE_FOLLOWED if starts and exits were learned
 * from. 0 without a session. */
unsigned prefetcher_trace_flags(const Prefetcher *s);

/* The session has ended: saves what was learned, and frees. NULL. */
Prefetcher *prefetcher_end(Prefetcher *s);
