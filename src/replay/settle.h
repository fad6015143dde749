/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A greeter that has just come up, or a boot that is not quite over, still reads for itself: a
 * replay at idle priority lets it, where the I/O scheduler knows priorities. Elsewhere only waiting
 * does. */

#include "base/time-util.h"

#include <signal.h>

#define SETTLE_SAMPLE_USEC  (250 * USEC_PER_MSEC)
#define SETTLE_QUIET_USEC   (USEC_PER_SEC) /* so long tasks must have waited for I/O ... */
#define SETTLE_QUIET_PERMIL 100U           /* ... at most so much of the time, in every sample */

/* Waits until it is quiet, at most `max`, or until one of the (blocked) signals comes: returns
 * that, otherwise 0. At once where neither pressure nor disk statistics are to be had. */
int settle(int root_fd, usec_t max, const sigset_t *signals);
