/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* STATE/history.jsonl: one line for each boot and login, oldest first. When the file has grown to
 * HISTORY_BYTES_MAX, it is renamed to history.1.jsonl and replaces the older file of that name. */

#include "measure/launch-record.h"
#include "measure/session-record.h"

#define HISTORY_FILE      "history.jsonl"
#define HISTORY_OLD_FILE  "history.1.jsonl"
#define HISTORY_BYTES_MAX (2U << 20)

/* The starts of applications, one line each. The file is bounded in the same way. */
#define LAUNCHES_FILE      "launches.jsonl"
#define LAUNCHES_OLD_FILE  "launches.1.jsonl"
#define LAUNCHES_BYTES_MAX (512U << 10)

/* Statistics use this many of the newest sessions. */
#define HISTORY_WINDOW 1200U

typedef struct History {
    SessionRecord *sessions; /* oldest first */
    size_t n, allocated;
    size_t n_bad; /* lines that cannot be used */
    bool torn;    /* the last line has no end: its writer was killed */
} History;

void history_done(History *h);
#define _cleanup_history_ _cleanup_(history_done)

/* Reads the newest `max` sessions (0: all). A file that does not exist counts as empty. Returns 0,
 * -ENOMEM, or the negative errno of reading. The function logs nothing. */
int history_read(int state_fd, size_t max, History *ret);

/* Returns the beginning of the newest session of the stage, and of the user (UID_INVALID: of
 * anybody), that ran without any replay. Only such a session shows which metadata it reads. A time
 * after `now` (wall clock) comes from a wrong clock, and that session does not count. Returns 0 if
 * there is none, and USEC_INFINITY if the history is empty. Pure. */
usec_t history_observed_until(const History *h, Stage stage, uint32_t uid, usec_t now);

/* The boots of a history, without those that were not recorded. */
typedef struct HistoryBoots {
    usec_t recorded;           /* wall clock: the newest boot; 0: none */
    usec_t exact;              /* the newest boot that was recorded exactly; 0: none */
    uint64_t n_replayed;       /* boots that were replayed */
    uint64_t n_replayed_since; /* of these, those after the last one that was recorded exactly */
} HistoryBoots;

/* Counts the boots. A time more than HISTORY_AHEAD_USEC after `now` (wall clock) comes from a wrong
 * clock, and would stay the newest one until the clock reaches it: it is no time of a boot. A
 * smaller difference may be that of a clock in local time, so the time counts. Pure. */
#define HISTORY_AHEAD_USEC (48 * USEC_PER_HOUR)
HistoryBoots history_count_boots(const History *h, usec_t now);

/* Returns 0 if the file of that name in the state directory can be read or does not exist, or the
 * negative errno of reading. `name` is one of the four names above. */
int history_check_file(int state_fd, const char *name);

/* Appends one line with a single write(2) and fsync(2). If a writer was killed within a line, cuts
 * that line off first and sets *ret_torn. Waits at most five seconds for another writer. Returns 0,
 * -EBUSY, or another negative errno. If the write fails, the part of the line that was written is
 * cut off again. */
int history_append(int state_fd, const SessionRecord *s, bool *ret_torn);

/* Returns true for a session that is to be deleted. */
typedef struct HistoryTest {
    bool (*is_deleted)(const SessionRecord *s, const void *argument);
    const void *argument;
} HistoryTest;

/* Deletes the sessions that `test` selects, and lines that cannot be used. Each of the two files is
 * replaced as a whole or removed, the older one first. If the caller is killed, no other session is
 * lost, and a second call deletes what the first one left. Keeps the lines that other processes
 * append meanwhile. Returns 0, -EBUSY (another writer), or another negative errno. */
int history_delete(int state_fd, const HistoryTest *test);

/* Appends starts as history_append() appends a session. Returns 0, -EBUSY, or another negative
 * errno. */
int launches_append(int state_fd, const LaunchRecords *l);

/* Reads all starts, oldest first. Files that do not exist count as empty. Returns 0, -ENOMEM, or
 * the negative errno of reading. */
int launches_read(int state_fd, LaunchRecords *ret);

/* Returns true for a start that is to be deleted. */
typedef struct LaunchTest {
    bool (*is_deleted)(const LaunchRecord *l, const void *argument);
    const void *argument;
} LaunchTest;

/* Deletes the starts that `test` selects. In all other respects it is like history_delete(). */
int launches_delete(int state_fd, const LaunchTest *test);
