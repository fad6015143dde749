/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/clock.h"

#include <stdlib.h>

usec_t clock_now(clockid_t clock)
{
    struct timespec ts;

    if (clock_gettime(clock, &ts) < 0)
        abort();
    return (usec_t)ts.tv_sec * USEC_PER_SEC + (usec_t)ts.tv_nsec / NSEC_PER_USEC;
}

int64_t clock_utc_offset_sec(usec_t realtime)
{
    time_t seconds = (time_t)(realtime / USEC_PER_SEC);
    struct tm local;

    tzset(); /* localtime_r() alone may keep the time zone of its first call */
    return localtime_r(&seconds, &local) ? local.tm_gmtoff : 0;
}
