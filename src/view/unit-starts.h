/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The starts of systemd units, from the journal: units of the system manager for a boot, and of the
 * user manager for a login or a session. The journal also has the starts of earlier boots. Messages
 * from before the start of journald name no unit, so the earliest starts are missing. */

#include "command/cli.h"
#include "report/timeline.h"
#include "trace/trace.h"

/* Adds the units whose start began, succeeded or failed during the trace. Reads the journal of the
 * machine, or the journal below $HEADSTART_SYSTEM_ROOT, until `deadline` (CLOCK_MONOTONIC). Returns
 * the number of units that were added, or -ENOMEM, -ETIMEDOUT (the timeline has some of the units),
 * or the error of reading the journal. Logs nothing. */
int unit_starts_add(const Context *c, const Trace *t, usec_t deadline, Timeline *timeline);
