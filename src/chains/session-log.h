/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The latest sessions of a history, start by start. The chains' sums do not keep the order of
 * starts beyond one successor, nor the day and the age of a start; the log keeps all three. The
 * sequence experts (sequence.h) and the horizon experts (horizon.h) count starts in it. Pure.
 *
 * The log holds the SESSION_LOG_MAX latest sessions by their total order (beginning, length, number
 * of starts, starts). The latest sessions of a union of logs are the same for any grouping.
 * Therefore logs merge exactly, associatively and commutatively. Memory is bounded. */

#include "base/macros.h"
#include "base/time-util.h"

#define SESSION_LOG_MAX        64U
#define SESSION_LOG_STARTS_MAX 512U /* of one session; later starts are not logged */

typedef struct LoggedStart {
    uint32_t application; /* its number in the history */
    uint32_t at_msec;     /* since the session began */
    uint32_t end_msec;    /* when it stopped running; the session's length if it ran to the end */
} LoggedStart;

typedef struct LoggedSession {
    uint64_t begin_msec; /* wall clock */
    uint32_t length_msec;
    uint32_t n;
    LoggedStart *starts; /* in the order of time */
} LoggedSession;

/* A zeroed struct is valid and empty. */
typedef struct SessionLog {
    LoggedSession *sessions; /* the oldest first */
    size_t n, allocated;
} SessionLog;

/* Compares two applications for the total order. The result is like that of strcmp(). */
typedef int (*compare_applications_t)(uint32_t a, uint32_t b, const void *userdata);

void session_log_done(SessionLog *log);

/* Adds a copy of the session, and drops the oldest session if there are more than SESSION_LOG_MAX.
 * Equal sessions are all kept. Returns 0 or -ENOMEM. */
int session_log_add(SessionLog *log, const LoggedSession *session, compare_applications_t compare,
                    const void *userdata);

/* Copies a whole log. Returns 0 or -ENOMEM. */
int session_log_copy(const SessionLog *log, SessionLog *ret);

/* Returns the size of the log in memory, in bytes. */
size_t session_log_size(const SessionLog *log);
