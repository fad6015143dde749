/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "chains/session-log.h"

#include <string.h>

void session_log_done(SessionLog *log)
{
    for (size_t i = 0; i < log->n; i++)
        free(log->sessions[i].starts);
    free(log->sessions);
    *log = (SessionLog){0};
}

static int compare_sessions(const LoggedSession *a, const LoggedSession *b,
                            compare_applications_t compare, const void *userdata)
{
    if (a->begin_msec != b->begin_msec)
        return a->begin_msec < b->begin_msec ? -1 : 1;
    if (a->length_msec != b->length_msec)
        return a->length_msec < b->length_msec ? -1 : 1;
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (uint32_t i = 0; i < a->n; i++) {
        int k;

        if (a->starts[i].at_msec != b->starts[i].at_msec)
            return a->starts[i].at_msec < b->starts[i].at_msec ? -1 : 1;
        if (a->starts[i].end_msec != b->starts[i].end_msec)
            return a->starts[i].end_msec < b->starts[i].end_msec ? -1 : 1;
        k = compare(a->starts[i].application, b->starts[i].application, userdata);
        if (k != 0)
            return k;
    }
    return 0;
}

static int copy_session(const LoggedSession *from, LoggedSession *ret)
{
    LoggedSession x = *from;

    x.starts = reallocarray(NULL, MAX(x.n, 1U), sizeof(*x.starts));
    if (!x.starts)
        return -ENOMEM;
    if (x.n > 0)
        memcpy(x.starts, from->starts, x.n * sizeof(*x.starts));
    *ret = x;
    return 0;
}

int session_log_add(SessionLog *log, const LoggedSession *session, compare_applications_t compare,
                    const void *userdata)
{
    size_t at = log->n;
    LoggedSession x;
    int r;

    while (at > 0 && compare_sessions(session, &log->sessions[at - 1], compare, userdata) < 0)
        at--;
    if (log->n == SESSION_LOG_MAX && at == 0)
        return 0; /* it is older than all others */
    r = grow_array(&log->sessions, &log->allocated, log->n + 1, sizeof(*log->sessions));
    if (r >= 0)
        r = copy_session(session, &x);
    if (r < 0)
        return r;
    memmove(log->sessions + at + 1, log->sessions + at, (log->n - at) * sizeof(*log->sessions));
    log->sessions[at] = x;
    if (log->n < SESSION_LOG_MAX) {
        log->n++;
        return 0;
    }
    free(log->sessions[0].starts);
    memmove(log->sessions, log->sessions + 1, log->n * sizeof(*log->sessions));
    return 0;
}

int session_log_copy(const SessionLog *log, SessionLog *ret)
{
    SessionLog x = {0};
    int r = grow_array(&x.sessions, &x.allocated, log->n + 1, sizeof(*x.sessions));

    for (size_t i = 0; r >= 0 && i < log->n; i++) {
        r = copy_session(&log->sessions[i], &x.sessions[i]);
        x.n += r >= 0;
    }
    if (r < 0) {
        session_log_done(&x);
        return r;
    }
    *ret = x;
    return 0;
}

size_t session_log_size(const SessionLog *log)
{
    size_t n = log->allocated * sizeof(*log->sessions);

    for (size_t i = 0; i < log->n; i++)
        n += log->sessions[i].n * sizeof(LoggedStart);
    return n;
}
