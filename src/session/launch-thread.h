/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A separate thread that waits for executions of programs and replays the launch set of the
 * application at once, at best-effort I/O priority (docs/flows.md). The sets are packs
 * (state/launch-packs.h), which `headstart plan` makes; the executor of headstart-replay reads
 * them.
 *
 * - A fanotify group that reports only executions wakes the thread for each one.
 * - If a set was read to its end before, some of its ranges are looked up in the page cache. If all
 *   of them are resident, the set is not read. Otherwise only those data of the set that are not
 *   resident are requested, so that the replay skips what the application has already read.
 * - pack_is_control() chooses some boots in which the set of an application is not read. Until one
 *   has counted for an application, such starts are observed (launch-control.h): they show what the
 *   start needs of the set. Meanwhile the prefetch thread is held. When the recording of the
 *   session has ended, these sets are read, too.
 * - No set is read when memory is short (launch_fits()). While sets are read, the memory pressure
 *   and the temperature are checked every LAUNCH_PRESSURE_USEC; if one of them is too high, all
 *   reading is stopped.
 *
 * Only programs on local block-backed filesystems are watched. */

#include "session/launch-log.h"
#include "session/launch-use.h"

#define LAUNCH_PRESSURE_USEC (250 * USEC_PER_MSEC) /* between two checks of memory pressure */

/* launch_thread_new() copies the strings. */
typedef struct LaunchOptions {
    const char *root;        /* as realpath(3) returns it */
    const char *state;       /* directory of the packs */
    uint32_t uid;            /* of the session; UID_INVALID: unknown, or several */
    double maximum_pressure; /* percent of time in which tasks wait for memory */
} LaunchOptions;

/* The most users whose control starts are distinguished. */
#define LAUNCH_CONTROL_USERS_MAX 32U

/* Sums since launch_thread_new(), except for `latency_usec`. */
typedef struct LaunchReport {
    uint64_t n_starts;   /* starts of applications that have a set (launch_table_note()) */
    uint64_t n_replayed; /* sets whose reading was begun */
    uint64_t n_resident; /* starts whose set was in memory */
    uint64_t n_control;  /* starts that were not replayed, because pack_is_control() chose this boot
                          */
    uint64_t n_dropped;  /* starts that were not replayed: no slot, no memory, or an error */
    uint64_t n_stopped;  /* sets whose reading was stopped before its end */
    uint64_t n_observed; /* control starts that were observed to their end */
    uint64_t read_bytes;
    usec_t latency_usec; /* of the latest replayed start: from its event to the start of replay */
    uint32_t control_uids[LAUNCH_CONTROL_USERS_MAX]; /* the users of the `n_control` starts */
    size_t n_control_uids;
} LaunchReport;

/* Returns true if there was a control start of that user (UID_INVALID: of any user). */
bool launch_report_has_control(const LaunchReport *r, uint32_t uid);

typedef struct LaunchThread LaunchThread;

/* Switches the replay of further starts on or off. It is on at first. What is being read is read to
 * its end. */
void launch_thread_switch(LaunchThread *t, bool on);

/* The session is not recorded any more, so nothing can be learned from a control start: from now on
 * no start is one. NULL is allowed. */
void launch_thread_end_recording(LaunchThread *t);

/* Starts the thread. The caller has blocked its signals before, so that the thread does not receive
 * them. Returns 0 or a negative errno, for example -EPERM if fanotify is not permitted. */
int launch_thread_new(const LaunchOptions *o, LaunchThread **ret);

/* Stops the thread and all replays. A thread that needs longer than a second is left behind, and
 * frees everything when it ends. Samples of the page cache may take seconds, and a read from a dead
 * disk hangs until the process ends. */
LaunchThread *launch_thread_free(LaunchThread *t);
DEFINE_CLEANUP(LaunchThread *, launch_thread_free);

/* Copies the report to *ret. If `t` is NULL, all its members are 0. */
void launch_thread_report(LaunchThread *t, LaunchReport *ret);

/* Copies the replays that are over to *ret. If `t` is NULL, there are none. */
void launch_thread_log(LaunchThread *t, LaunchLog *ret);

/* Moves what was observed of control starts to *ret, which the caller frees with
 * launch_uses_done(). If `t` is NULL, there is nothing. */
void launch_thread_take_uses(LaunchThread *t, LaunchUses *ret);
