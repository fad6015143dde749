/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Waits for a quiet disk. A greeter that has just appeared still reads, and so does a boot that is
 * not finished. A replay at idle priority yields to them only if the I/O scheduler honours
 * priorities; with other schedulers it must wait. */

#include "base/time-util.h"

#include <signal.h>

/* The longest wait that can be requested. */
#define SETTLE_MAX (300 * USEC_PER_SEC)

#define SETTLE_SAMPLE_USEC (250 * USEC_PER_MSEC)
#define SETTLE_QUIET_USEC  (USEC_PER_SEC) /* the disk must be quiet for this long */
#define SETTLE_QUIET_PERMIL \
    100U /* the disk is quiet if tasks waited for I/O at most this share of the time */

/* Waits until the disk is quiet, until `max` has passed, or until one of the signals arrives. The
 * caller has blocked these signals. Returns that signal, otherwise 0. Returns 0 at once if the
 * kernel has neither pressure stall information nor disk statistics. */
int settle(int root_fd, usec_t max, const sigset_t *signals);
