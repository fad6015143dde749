/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes a trace of a stage's record in two steps: the metadata must be observed before anything
 * else is done, because libext2fs reads metadata itself, and so does the kernel when a path is
 * resolved. Between the two steps the caller reads the events that are still queued. */

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

/* Resolves paths, samples pages within the users' shares, and makes the trace. Removes the samples
 * from the stage's record. The paths of the trace start at `root`. `run_dir` is the directory in
 * which replay leaves its status, or NULL. Returns 0, -E2BIG (more volumes or lifetimes than a
 * trace holds), -ENOMEM, or another negative errno. */
int trace_builder_build(TraceBuilder *b, const char *root, const char *run_dir, Trace **ret);

/* Returns the path as traces name it, that is, as if `root` were "/". The result points into
 * `path`, or is the constant "/". Returns NULL if `path` is not below the root. */
const char *trace_path_below(const char *root, const char *path);
