/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Progress of long work: one line on standard error that is overwritten and gone at the end. Shown
 * on a terminal only, after half a second, ten times a second at most. */

#include "base/time-util.h"

#include <stdbool.h>

typedef struct Progress {
    const char *what; /* "Learning"; not copied */
    bool terminal;
    bool shown;
    usec_t start, last; /* CLOCK_MONOTONIC */
} Progress;

/* quiet: never show it. */
Progress progress_start(const char *what, bool quiet);

/* `done` of `total` are done; total 0: only `done` is known. */
void progress_update(Progress *p, uint64_t done, uint64_t total);

/* Removes the line. Also for _cleanup_. */
void progress_done(Progress *p);
