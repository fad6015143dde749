/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The recorder: follows opens, executions and processes, and makes a trace of each stage.
 *
 *     recorder_new(&options, &r);
 *     recorder_attach(r, event);            // drains by a timer, follows new mounts
 *     recorder_begin_stage(r, STAGE_BOOT, UID_INVALID);
 *     …                                     // sd_event_loop()
 *     recorder_end_stage(r, &trace);        // the caller writes it: nothing was written so far
 *     recorder_begin_stage(r, STAGE_LOGIN, uid);
 *
 * Events that come in between stages are dropped. */

#include "base/uid.h"
#include "trace/trace.h"

#include <systemd/sd-event.h>

typedef struct RecorderOptions {
    const char *root;    /* paths start here; only filesystems mounted at or below it count */
    const char *run_dir; /* where read-ahead's record and replay's status lie; NULL: neither */
    bool exact;          /* lower read-ahead everywhere */
    /* Pretend that this kernel or these privileges lack something, to take the other way. */
    bool no_cachestat;
    bool no_proc_connector;
    bool no_fowner;
    bool no_unlimited_queue;
} RecorderOptions;

/* How often the event queue is read: rarely enough to cost nothing (FACTS: seven times less CPU
 * than waking for each event), often enough that it never fills. Longer while nothing comes. */
#define RECORDER_DRAIN_USEC      (20 * USEC_PER_MSEC)
#define RECORDER_DRAIN_IDLE_USEC (160 * USEC_PER_MSEC)

typedef struct Recorder Recorder;

/* Watches every local block-backed filesystem below the root. *ret_error, if not NULL, becomes one
 * line for the person who asked (allocated). -EPERM (no CAP_SYS_ADMIN), -ENOSYS (no fanotify),
 * -ENODEV (nothing to watch), -ENOMEM, or another negative errno. */
int recorder_new(const RecorderOptions *o, Recorder **ret, char **ret_error);
Recorder *recorder_free(Recorder *r);
DEFINE_CLEANUP(Recorder *, recorder_free);
#define _cleanup_recorder_ _cleanup_(recorder_freep)

/* Adds the recorder's timer and mount watch to the event loop, which it keeps a reference to. */
int recorder_attach(Recorder *r, sd_event *event);

/* Reads what is queued. The timer does it; a caller without an event loop calls it. The number of
 * events, or a negative errno. */
int recorder_drain(Recorder *r);

/* An application that starts or exits. The times are on the clock that counts suspended time, too
 * (CLOCK_BOOTTIME). */
typedef struct RecordedApplication {
    const char *path; /* below the root; borrowed */
    uint32_t pid;
    uint32_t uid; /* UID_INVALID: unknown */
    usec_t at_boottime;
    bool started;
} RecordedApplication;

/* Tells of every application that starts or exits from now on, from within recorder_drain(); first
 * of those that run. At most three batches late, as which is which must be settled first. `tell`
 * NULL: no more. 0 or -ENOMEM. */
typedef void (*recorder_tell_t)(void *arg, const RecordedApplication *a);
int recorder_follow(Recorder *r, recorder_tell_t tell, void *arg);

/* From here on events belong to this stage. 0, -EBUSY (one is being recorded), -ENOMEM. */
int recorder_begin_stage(Recorder *r, Stage stage, uint32_t uid);

/* Ends the stage: metadata snapshot first, then paths, then residency. 0, -ESRCH (none is being
 * recorded), -ENOMEM, or another negative errno. */
int recorder_end_stage(Recorder *r, Trace **ret);

/* The trace so far: enough was recorded. Nothing more is, but who starts and exits is told on
 * (recorder_follow()) until the next stage begins. As recorder_end_stage() otherwise. */
int recorder_take_trace(Recorder *r, Trace **ret);

/* Ends the stage without a trace; a login then was none. 0, -ESRCH, -ENOMEM. */
int recorder_drop_stage(Recorder *r);

/* Whose the stage that is being recorded is: UID_INVALID if several users share it. */
void recorder_set_uid(Recorder *r, uint32_t uid);

/* As RecorderOptions.exact, from the next stage on. */
void recorder_set_exact(Recorder *r, bool exact);

/* How many applications were started so far, also between stages: exec events, headstart's own
 * programs not counted. */
uint64_t recorder_n_starts(const Recorder *r);

/* What the recorder has to do without, as one line, or NULL; for logging at start. */
const char *recorder_limits(const Recorder *r);
