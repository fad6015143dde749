/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes a trace of a stage's record in two steps. The metadata must be observed first, because
 * libext2fs reads metadata itself, as does the kernel when it resolves a path. Between the two
 * steps the caller reads the events that are still queued. */

#include "record/observer.h"
#include "trace/trace.h"

typedef struct TraceBuilder TraceBuilder;

/* Begins a trace when its stage has ended, and observes which metadata the stage has read. The
 * observer is borrowed; its volumes must not change until the trace is built. Returns 0 or
 * -ENOMEM. */
int trace_builder_new(Observer *o, TraceBuilder **ret);
TraceBuilder *trace_builder_free(TraceBuilder *b);
DEFINE_CLEANUP(TraceBuilder *, trace_builder_free);
#define _cleanup_trace_builder_ _cleanup_(trace_builder_freep)

/* Does what cannot wait until the trace is built. It may read events, but must not end, begin or
 * drop a stage, and must not change the volumes. */
typedef void (*trace_builder_pause_t)(void *arg);
#define TRACE_BUILDER_PAUSE_USEC (20 * USEC_PER_MSEC)

/* Takes the stage's record from the observer, whose log then contains only the running processes
 * and the runs whose serial is `keep_from` or higher, as after observer_forget(). The observer may
 * therefore record further events while the trace is built: trace_builder_build() calls `pause`
 * whenever TRACE_BUILDER_PAUSE_USEC have passed, or as much time as the last call took, if that is
 * more. Returns 0, or -ENOMEM with nothing changed. */
int trace_builder_take(TraceBuilder *b, uint64_t keep_from, trace_builder_pause_t pause, void *arg);

/* Resolves paths, samples pages within the users' shares, and makes the trace. Removes the samples
 * from the stage's record. The paths of the trace start at `root`. `run_dir` is the directory in
 * which replay leaves its status, or NULL. Volumes beyond TRACE_VOLUMES_MAX, foreign ones first,
 * and their files are left out. Returns 0, -E2BIG (more lifetimes than a trace holds), -ENOMEM, or
 * another negative errno. */
int trace_builder_build(TraceBuilder *b, const char *root, const char *run_dir, Trace **ret);

/* Returns the path as traces name it, that is, as if `root` were "/". The result points into
 * `path`, or is the constant "/". Returns NULL if `path` is not below the root. */
const char *trace_path_below(const char *root, const char *path);
