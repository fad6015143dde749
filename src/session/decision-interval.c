/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "session/decision-interval.h"

#include "base/macros.h"

usec_t decision_interval_next(usec_t interval_usec, usec_t since_usec, uint64_t n_starts,
                              usec_t cycle_usec)
{
    usec_t max = MIN(MAX(cycle_usec, DECISION_INTERVAL_MIN_USEC), DECISION_INTERVAL_MAX_USEC);

    if (n_starts == 0 || since_usec / n_starts >= DECISION_RARE_USEC)
        return DECISION_INTERVAL_MIN_USEC;
    return interval_usec >= max / 2 ? max : MAX(2 * interval_usec, DECISION_INTERVAL_MIN_USEC);
}
