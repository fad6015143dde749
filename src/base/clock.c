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
