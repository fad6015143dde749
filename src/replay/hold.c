/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "replay/hold.h"

#include "base/macros.h"

usec_t hold_unread_until(const Hold *x)
{
    return x->from + MIN(x->max, HOLD_UNREAD_MAX);
}

/* Returns what is left of a time after the earlier hold. */
static usec_t rest(const Hold *x, usec_t time)
{
    return time > x->held ? time - x->held : 0;
}

usec_t hold_until(const Hold *x, const PackHeader *h, Policy policy, HoldEnd *ret_end)
{
    usec_t deadline = MIN(le64toh(h->deadline_usec), HOLD_MAX), hold = le32toh(h->hold_usec), last,
           planned;

    *ret_end = HOLD_END_NONE;
    if (policy != POLICY_GATE)
        return x->from;
    last = x->from + rest(x, MIN(deadline, x->max));
    planned = hold > 0 ? x->start + rest(x, hold) : last;
    *ret_end = planned < last ? HOLD_END_PLANNED : HOLD_END_DEADLINE;
    return MIN(planned, last);
}
