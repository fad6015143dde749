/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Selects what is learned from a trace that exceeds the limits TRACE_RECORD_* (trace-limits.h).
 * Older recorders had no limits, and a trace can come from another machine. Pure. */

#include "model/model.h"

/* Cuts the trace to the limits for one stage and for each user in the trace. Objects that the
 * session's user, root or system accounts opened are kept first. Among them, objects with the
 * highest probability in this stage's model come first, then executables, then the objects that
 * were opened first. A file is charged to the most trusted of the users who ran an application that
 * opened it, since accesses name the application only. *ret_dropped is the number of removed files
 * (0: the trace is unchanged). Returns 0; -EINVAL if the trace is still being built; -ENOMEM. */
int model_select(const Model *m, Trace *t, size_t *ret_dropped);
