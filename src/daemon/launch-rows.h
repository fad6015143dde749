/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Adds to the trace of a session what control starts needed (session/launch-use.h). Pure. */

#include "session/launch-use.h"
#include "trace/trace.h"

/* Adds the pages of files as rows of `touched`, where page tables have shown none, and the metadata
 * as rows of `needed`. Files, filesystems and applications that the trace does not have are left
 * out, as are the starts of other users than that of the trace, if it has one, and the starts of a
 * user beyond TRACE_RECORD_USER_RANGES_MAX ranges. `uses` may lose ranges. Returns 0, -E2BIG or
 * -ENOMEM; the trace is valid in any case. */
int launch_rows_add(LaunchUses *uses, Trace *t);
