/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads how busy the processors are. */

#include "base/macros.h"

/* Reads from /proc/stat how long, in microseconds, all processors together have run user and kernel
 * code since the machine started. The time of niced processes (indexers, updates) and of interrupts
 * does not count. root_fd is borrowed (AT_FDCWD: "/"). Returns 0, -EBADMSG (an unexpected format),
 * or another negative errno. */
int cpu_busy_read(int root_fd, uint64_t *ret_busy_usec);
