/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* An instant with the kernel's totals at that instant. The difference of two such instants gives
 * the I/O waits and CPU time of a period. This file needs only libc. */

#include "base/time-util.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Moment {
    usec_t boottime, realtime;
    usec_t monotonic;      /* stands still while the machine is suspended; `boottime` does not */
    uint64_t stalled_usec; /* how long tasks had waited for I/O; UINT64_MAX: unknown */
    uint64_t busy_usec;    /* CPU time of all processors; UINT64_MAX: unknown */
} Moment;

#define MOMENT_NULL                                         \
    {                                                       \
        .stalled_usec = UINT64_MAX, .busy_usec = UINT64_MAX \
    }

/* Returns true if the machine was suspended or hibernated between the two moments. */
bool moment_suspended(const Moment *begin, const Moment *end);

/* Reads the clocks and this machine's totals. Totals that cannot be read are unknown. */
void moment_read(Moment *ret);
