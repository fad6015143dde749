/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Removes objects from a trace that was read. Pure. */

#include "trace/trace.h"

/* Keeps the files whose flag is set; keep[i] belongs to t->files[i]. Accesses to other files are
 * removed, and so are applications whose executable is removed, with their lifetimes. If such an
 * application accessed a file that is kept, the access is kept without its application. Nodes of
 * the path tree stay. Returns 0; -EINVAL if the trace is still being built; -ENOMEM. */
int trace_keep_files(Trace *t, const bool *keep);
