/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "replay/settle.h"

#include "base/clock.h"
#include "system/pressure.h"

#include <errno.h>

int settle(int root_fd, usec_t max, const sigset_t *signals)
{
    static const struct timespec sample = {
            .tv_nsec = (long)(SETTLE_SAMPLE_USEC * NSEC_PER_USEC),
    };
    usec_t last = clock_now(CLOCK_MONOTONIC), end = last + max, quiet = 0;
    Pressure pressure = {.root_fd = root_fd};
    uint64_t before, after;

    if (pressure_read(&pressure, &before) < 0)
        return 0;
    while (quiet < SETTLE_QUIET_USEC && last < end) {
        int sig = sigtimedwait(signals, NULL, &sample);
        usec_t now = clock_now(CLOCK_MONOTONIC);

        if (sig > 0)
            return sig;
        if (sig < 0 && errno != EAGAIN && errno != EINTR)
            return 0;
        if (pressure_read(&pressure, &after) < 0)
            return 0;
        if ((after - before) * 1000 <= (now - last) * SETTLE_QUIET_PERMIL)
            quiet += now - last;
        else
            quiet = 0;
        before = after;
        last = now;
    }
    return 0;
}
