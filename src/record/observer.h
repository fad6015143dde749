/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Observes which application opens which file. Reads the queues of fanotify and of the proc
 * connector into a stage's record, and assigns processes to applications. */

#include "observe/proc-facts.h"
#include "observe/processes.h"
#include "observe/watched-volumes.h"
#include "record/stage-record.h"

/* The shortest time between two checks for exited processes. They are made only without the proc
 * connector. */
#define OBSERVER_REAP_USEC (USEC_PER_SEC / 2)

/* Between stages, ended runs are forgotten when the table has more runs than this, and more than
 * twice the runs that stayed the last time. */
#define OBSERVER_RUNS_MAX 5000U

/* The events of an interval are forgotten when it has more opens than this; a login has about
 * 20,000. */
#define OBSERVER_INTERVAL_EVENTS_MAX 40000U

typedef struct Observer {
    StageRecord *stage; /* the record that the observer fills; borrowed */
    const char *root;   /* subordinate UIDs are looked up in /etc below this directory; borrowed */
    SubordinateUids subordinate; /* read in each stage when such a UID first appears */
    Fanotify *fanotify;
    WatchedVolumes volumes;
    int connector_fd; /* negative: there is no connector, and /proc is read instead */
    ProcReader *proc;
    ProcessTable *processes;
    usec_t last_reap;      /* since StageRecord.zero_boottime */
    uint32_t drained_msec; /* when the queue was last read, since StageRecord.zero_boottime */
    uint64_t n_lost;       /* times that the connector lost events */
    uint64_t n_starts;     /* applications started so far, also between stages */
    size_t compact_at;     /* number of runs at which ended runs are forgotten */
    /* headstart-init opened the event queue before this process started. The queue therefore
     * contains the files that this process opened when it started. These files belong to every
     * boot. The caller sets this field; the first complete reading of the queue resets it. */
    bool own_start;
} Observer;

/* Frees what the observer contains. An observer that is zeroed, except that connector_fd is -EBADF,
 * is valid. */
void observer_done(Observer *o);

/* Adds the processes that run already. Returns 0, -ENOMEM, or the error of reading /proc. */
int observer_scan_processes(Observer *o);

/* Reads the queued events. Returns the number of opens, or a negative errno. */
int observer_drain(Observer *o);

/* Begins a stage: forgets everything but the running processes and what they run. Call it before
 * stage_record_begin(). Returns 0 or -ENOMEM. */
int observer_begin_stage(Observer *o);

/* Call it when no stage runs. Forgets the events and the ended runs, except runs whose serial is
 * `keep_from` or higher. Returns 0 or -ENOMEM. */
int observer_forget(Observer *o, uint64_t keep_from);

/* Like observer_forget(), and returns the previous log, which the caller frees. */
int observer_hand_over(Observer *o, uint64_t keep_from, EventLog **ret_log);

/* Returns true if no stage runs and observer_forget() is due, because the table has too many runs
 * or the interval has too many opens. */
bool observer_is_full(const Observer *o);
