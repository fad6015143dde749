/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/moment.h"

#include "base/clock.h"
#include "system/cpu-busy.h"
#include "system/pressure.h"

#include <fcntl.h>

/* The two clocks are not read at the same instant. */
#define SUSPENDED_MIN_USEC USEC_PER_SEC

bool moment_suspended(const Moment *begin, const Moment *end)
{
    usec_t all = end->boottime - MIN(begin->boottime, end->boottime);
    usec_t awake = end->monotonic - MIN(begin->monotonic, end->monotonic);

    return all > awake && all - awake >= SUSPENDED_MIN_USEC;
}

void moment_read(Moment *ret)
{
    *ret = (Moment)MOMENT_NULL;
    ret->boottime = clock_now(CLOCK_BOOTTIME);
    ret->monotonic = clock_now(CLOCK_MONOTONIC);
    ret->realtime = clock_now(CLOCK_REALTIME);
    (void)pressure_read_total(AT_FDCWD, &ret->stalled_usec);
    (void)cpu_busy_read(AT_FDCWD, &ret->busy_usec);
}
