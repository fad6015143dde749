/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Facts in a trace about the machine and about the recorded session. */

#include "record/stage-record.h"
#include "trace/trace.h"

/* Fills in kernel, distribution, clocks, flags, counters and what was left out. `root` is the
 * directory that is recorded. `run_dir` is the directory in which replay leaves its status, or
 * NULL. The caller has added the lifetimes to the trace. Returns 0 or -ENOMEM. */
int trace_add_facts(Trace *t, const StageRecord *s, const char *root, const char *run_dir);

/* Returns true if headstart-replay has reported below `run_dir` (NULL: nowhere) that it replays, or
 * has replayed, a pack of this stage and user (UID_INVALID: of any user). */
bool trace_is_replayed(const char *run_dir, Stage stage, uint32_t uid);
