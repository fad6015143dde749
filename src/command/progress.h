/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shows the progress of long work on standard error, in one line that is overwritten and finally
 * removed. The line is shown only on a terminal, and only after half a second. A child process
 * draws the line ten times per second, so the times in it keep changing during a long step. */

#include "base/time-util.h"

#include <stdbool.h>
#include <sys/types.h>

typedef struct ProgressCount ProgressCount;

typedef struct Progress {
    ProgressCount *count; /* shared with the child; NULL: nothing is shown */
    pid_t child;
} Progress;

/* Starts the line. `what` ("Learning") is not copied. With `quiet` the line is never shown. */
Progress progress_start(const char *what, bool quiet);

/* Notes that `done` of `total` steps are done; a total of 0 means that the total is not known. With
 * a total the line shows the share, and after a second the time that is left if each step takes
 * equally long. Without a total the line shows the number of steps, or the elapsed time while no
 * step is done. */
void progress_update(Progress *p, uint64_t done, uint64_t total);

/* Removes the line of this process until it is drawn again, so that a message can be printed in its
 * place. Does nothing if no line is shown. */
void progress_make_room(void);

/* Removes the line. May be used with _cleanup_. */
void progress_done(Progress *p);
