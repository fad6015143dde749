/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/moment.h"

#include "base/clock.h"
#include "system/cpu-busy.h"
#include "system/pressure.h"

#include <fcntl.h>

void moment_read(Moment *ret)
{
    *ret = (Moment)MOMENT_NULL;
    ret->boottime = clock_now(CLOCK_BOOTTIME);
    ret->realtime = clock_now(CLOCK_REALTIME);
    (void)pressure_read_total(AT_FDCWD, &ret->stalled_usec);
    (void)cpu_busy_read(AT_FDCWD, &ret->busy_usec);
}
