/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Adds to the trace of a session what control starts needed (session/launch-use.h). Pure. */

#include "session/launch-use.h"
#include "trace/trace.h"

/* Adds the pages of files as rows of `touched` where page tables have shown none, and metadata as
 * rows of `needed`. Leaves out: applications, filesystems and files that the trace lacks; files
 * with several names; a second start of an application; starts of users other than that of the
 * trace, if it has one; and starts of a user beyond TRACE_RECORD_USER_RANGES_MAX ranges. `uses` may
 * lose ranges. Returns 0, -E2BIG or -ENOMEM; the trace is valid in any case. */
int launch_rows_add(LaunchUses *uses, Trace *t);
