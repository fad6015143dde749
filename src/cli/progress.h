/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Progress of long work: one line on standard error, which is overwritten and finally removed.
 * Shown only on a terminal, after half a second, at most ten times per second. */

#include "base/time-util.h"

#include <stdbool.h>

typedef struct Progress {
    const char *what; /* "Learning"; not copied */
    bool terminal;
    bool shown;
    usec_t start, last; /* CLOCK_MONOTONIC */
} Progress;

/* `quiet`: the line is never shown. */
Progress progress_start(const char *what, bool quiet);

/* Shows the share and, after a second, the time that is left if each step takes equally long.
 * `done` of `total` steps are done; 0: the total is unknown. */
void progress_update(Progress *p, uint64_t done, uint64_t total);

/* Removes the line. Also for _cleanup_. */
void progress_done(Progress *p);
