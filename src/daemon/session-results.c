/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/session-results.h"

static void add_log(LaunchLog *to, const LaunchLog *from)
{
    for (size_t i = from->n - MIN(from->n, (size_t)LAUNCH_LOG_MAX); i < from->n; i++)
        launch_log_add(to, &from->items[i % LAUNCH_LOG_MAX]);
}

static void move_uses(LaunchUses *to, LaunchUses *from)
{
    for (size_t i = 0; i < from->n; i++)
        if (to->n < LAUNCH_USES_MAX)
            to->items[to->n++] = from->items[i];
        else
            launch_use_done(&from->items[i]);
    from->n = 0;
}

void session_results_add(SessionResults *to, SessionResults *from)
{
    to->flags |= from->flags;
    to->launches_since = from->launches_since == USEC_INFINITY
                                 ? USEC_INFINITY
                                 : MIN(to->launches_since, from->launches_since);
    add_log(&to->launch_log, &from->launch_log);
    move_uses(&to->launch_uses, &from->launch_uses);
    session_results_done(from);
}

void session_results_done(SessionResults *r)
{
    launch_uses_done(&r->launch_uses);
    *r = SESSION_RESULTS_EMPTY;
}
