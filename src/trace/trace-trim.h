/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Taking objects out of a trace that was read. Pure. */

#include "trace/trace.h"

/* Keeps the files whose flag is set; keep[i] belongs to t->files[i]. Accesses to other files go,
 * and so do applications whose executable goes, with their lifetimes. Accesses that such an
 * application made to a file that stays have no application afterwards. Nodes of the path tree
 * stay. 0; -EINVAL if the trace is still being built; -ENOMEM. */
int trace_keep_files(Trace *t, const bool *keep);
