/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes a trace of a stage's record. It has two steps: the metadata must be observed before
 * anything else, because resolving paths and libext2fs read metadata themselves. Between the two
 * steps the caller reads the events that are still queued. */

#include "record/observer.h"
#include "trace/trace.h"

typedef struct TraceBuilder TraceBuilder;

/* To be called when the stage has ended. Observes which metadata it has read. The observer is
 * borrowed; its volumes must not change until the trace is built. 0 or -ENOMEM. */
int trace_builder_new(Observer *o, TraceBuilder **ret);
TraceBuilder *trace_builder_free(TraceBuilder *b);
DEFINE_CLEANUP(TraceBuilder *, trace_builder_free);
#define _cleanup_trace_builder_ _cleanup_(trace_builder_freep)

/* Resolves paths, samples pages within the users' shares, and makes the trace. Removes the samples.
 * `root`: paths start there; `run_dir`: where replay leaves its status, or NULL. 0, -E2BIG (more
 * volumes or lifetimes than a trace holds), -ENOMEM, or another negative errno. */
int trace_builder_build(TraceBuilder *b, const char *root, const char *run_dir, Trace **ret);

/* The path as traces name it: below the root, borrowed from `path`. NULL if it lies elsewhere. */
const char *trace_path_below(const char *root, const char *path);
