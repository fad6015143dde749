/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much of the time processors have something to do. */

#include "base/macros.h"

/* The time that all processors together have run user and kernel code since the machine started, in
 * microseconds, from /proc/stat; what is nice (indexers, updates) and interrupts do not count.
 * root_fd is borrowed; AT_FDCWD: "/". 0 or a negative errno, -EBADMSG if it is not as expected. */
int cpu_busy_read(int root_fd, uint64_t *ret_busy_usec);
