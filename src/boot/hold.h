/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The bounds of the time for which headstart-init and headstart-replay hold a boot. Both count from
 * the moment at which the boot began to wait. */

#include "base/time-util.h"

/* The longest hold that a pack can request: the limit of Deadline= in headstart.conf(5). */
#define HOLD_MAX (60 * USEC_PER_SEC)

/* The longest hold while the deadline is not known, because neither headstart-replay nor the pack
 * could be read yet. */
#define HOLD_UNREAD_MAX (2 * USEC_PER_SEC)

/* headstart-init sets this environment variable for headstart-replay: the CLOCK_MONOTONIC time, in
 * microseconds, from which the boot waits. The value of EXTEND_TIMEOUT_USEC= in the messages of
 * headstart-replay then counts from this time. */
#define HOLD_BEGIN_VARIABLE "HEADSTART_HOLD_BEGIN_USEC"

/* Returns the value of headstart.deadline= on the kernel command line. The value limits every hold,
 * and is known before the disk is read. Returns HOLD_MAX if the word is missing, is not a time span
 * or is longer than HOLD_MAX, or if the command line cannot be read. */
usec_t hold_limit(int root_fd);
