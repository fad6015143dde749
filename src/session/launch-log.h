/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The replays of launch sets in one session, for the history of starts. Pure. */

#include "session/launch-table.h"

/* A replay of a launch set that is over. */
typedef struct LaunchReplay {
    LaunchKey key;
    usec_t begin, end; /* CLOCK_BOOTTIME */
    uint64_t read_bytes;
} LaunchReplay;

/* How many replays are kept. A session adds at most 32 starts to the history. */
#define LAUNCH_LOG_MAX 128U

/* Valid if zeroed. */
typedef struct LaunchLog {
    LaunchReplay items[LAUNCH_LOG_MAX]; /* replay number i is at i % LAUNCH_LOG_MAX */
    size_t n;                           /* all replays, also those that are not kept any more */
} LaunchLog;

/* Adds a replay. If there are LAUNCH_LOG_MAX replays already, the one that was added first is
 * dropped. */
void launch_log_add(LaunchLog *l, const LaunchReplay *r);

/* Returns the earliest replay of that application that began between `from` and `to` (both
 * included, CLOCK_BOOTTIME), or NULL. With key.uid UID_INVALID the replays of all users count. The
 * result is part of the log. */
const LaunchReplay *launch_log_find(const LaunchLog *l, LaunchKey key, usec_t from, usec_t to);
