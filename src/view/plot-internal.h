/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What timelines of stages and of starts share. Internal to src/view. */

#include "report/timeline-trace.h"
#include "view/plot-data.h"

/* Reads a trace of the state directory. Returns 0, -ENOMEM, or -ENOENT if the trace cannot be read
 * or `choice` excludes it. */
int plot_read_trace(int state_fd, const char *name, TraceChoice choice, Trace **ret);

/* Makes the timeline of the trace or, if `part` chooses applications, of a part of it. Without a
 * launch set in `part`, the pack of the stage is compared. Returns 0 or -ENOMEM; *ret is untouched
 * on failure. */
int plot_make_part(const Context *c, int state_fd, const Trace *t, const TimelineSources *part,
                   usec_t timeout, Timeline *ret);

/* Sets the title: what is drawn, when it was recorded, and whether it was replayed. Returns 0 or
 * -ENOMEM. */
int plot_set_title(const Trace *t, const char *what, bool replayed, Timeline *ret);
