/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The recorder: follows opens, executions and processes, and makes a trace of each stage. Apart
 * from values in /sys, it writes only the record of read-ahead.
 *
 *     recorder_new(&options, &recorder, &error);
 *     recorder_attach(recorder, event);             // drains by a timer, follows new mounts
 *     recorder_begin_stage(recorder, STAGE_BOOT, UID_INVALID);
 *     …                                             // sd_event_loop()
 *     recorder_end_stage(recorder, &trace);         // the caller writes it
 *     recorder_begin_stage(recorder, STAGE_LOGIN, uid);
 *
 * Executions and exits are followed all the time. Opens between two stages belong to the second
 * stage if RecorderOptions.intervals is set. If it is not set, they are dropped. */

#include "base/uid.h"
#include "trace/trace.h"

#include <systemd/sd-event.h>

typedef struct RecorderOptions {
    const char *root; /* paths start here; only filesystems mounted at or below it are recorded */
    const char *run_dir; /* directory of the record of read-ahead and of the status of replay; NULL:
                            there is none */
    const char *store;   /* directory where traces are stored; its encryption determines which names
                            they may contain (volume/encryption.h). NULL: all names. Borrowed */
    unsigned exact_kb;   /* read-ahead of all devices during the recording, in KiB; 0: unchanged */
    bool had_login;      /* a login of this boot has ended before the recorder was started */
    /* Record the intervals between stages: opens after the end of a stage, also while its trace is
     * made, belong to the next stage and get the time 0. */
    bool intervals;
    bool take_over; /* take over the recording that headstart-init began, if systemd has stored one
                       or run_dir offers one (handover.h) */
    /* For tests: the recorder behaves as if a feature of the kernel or a privilege were missing. */
    bool no_cachestat;
    bool no_proc_connector;
    bool no_fowner;
    bool no_unlimited_queue;
} RecorderOptions;

/* The time between two reads of the event queue. It is long enough to cost little (seven times less
 * CPU than waking for each event), and short enough to identify processes while they live. While no
 * opens arrive, this time doubles up to the second value. */
#define RECORDER_DRAIN_USEC      (20 * USEC_PER_MSEC)
#define RECORDER_DRAIN_IDLE_USEC (160 * USEC_PER_MSEC)

/* In descriptor mode each queued event prevents the unmounting of its filesystem. Its path is read
 * and its descriptor closed at once, or after this time since the last such read. The rest of the
 * work waits for the next read of the event queue. */
#define RECORDER_DESCRIPTORS_USEC (2 * USEC_PER_MSEC)

typedef struct Recorder Recorder;

/* Watches every local block-backed filesystem below the root. *ret_error, if not NULL, becomes one
 * line for the user (allocated), or NULL. Returns 0, -EPERM (CAP_SYS_ADMIN or CAP_DAC_READ_SEARCH
 * is missing), -ENOSYS (no fanotify), -ENODEV (nothing to watch), -ENOMEM, or another negative
 * errno. A recording that cannot be taken over is no error: one line is logged. */
int recorder_new(const RecorderOptions *o, Recorder **ret, char **ret_error);
/* Restores read-ahead if it was lowered. */
Recorder *recorder_free(Recorder *recorder);
DEFINE_CLEANUP(Recorder *, recorder_free);
#define _cleanup_recorder_ _cleanup_(recorder_freep)

/* Adds the recorder's timers, mount watch and descriptor watch to the event loop and keeps a
 * reference to the loop. Returns 0 or a negative errno. */
int recorder_attach(Recorder *recorder, sd_event *event);

/* Reads the queued events. The timer of recorder_attach() calls this function; a caller without an
 * event loop must call it. Returns the number of opens, or a negative errno. */
int recorder_drain(Recorder *recorder);

/* An application that started or exited. */
typedef struct RecordedApplication {
    const char *path; /* below the root; borrowed */
    uint32_t pid;
    uint32_t uid;       /* UID_INVALID: unknown */
    usec_t at_boottime; /* CLOCK_BOOTTIME */
    bool started;
} RecordedApplication;

/* Makes recorder_drain() call `report` for the applications that run now, and then for each start
 * and exit. A report comes at most three batches late, because the process must first be assigned
 * to an application. NULL ends the reports. Returns 0 or -ENOMEM. */
typedef void (*recorder_report_t)(void *arg, const RecordedApplication *a);
int recorder_follow(Recorder *recorder, recorder_report_t report, void *arg);

/* An interval that has lasted this long is restarted at a moment without opens, because the stage
 * hardly needs files that were opened long before it. */
#define RECORDER_INTERVAL_MAX_USEC (120 * USEC_PER_SEC)

/* Begins a stage. The events from now on belong to the stage, as do those of a recorded interval
 * before it. Returns 0, -EBUSY (a stage is being recorded already), -ENOMEM, or another negative
 * errno. */
int recorder_begin_stage(Recorder *recorder, Stage stage, uint32_t uid);

/* Notes that the point which the user waits for (the default target of a boot, the desktop of a
 * login) was reached `age` ago. Does nothing if another stage, or none, is being recorded. */
void recorder_note_ready(Recorder *recorder, Stage stage, usec_t age);

/* Returns true if the machine was suspended or hibernated since the stage began. */
bool recorder_was_suspended(const Recorder *recorder);

/* Ends the stage and makes its trace: takes the last snapshot of metadata, then resolves the path
 * of each file and reads its residency. Applications are still reported. Returns 0, -ESRCH (no
 * stage is being recorded), -ENOMEM, or another negative errno. After any error but -ESRCH there is
 * no trace, but the stage has ended. */
int recorder_end_stage(Recorder *recorder, Trace **ret);

/* Ends the stage without a trace. A login that was `cut_short` is not counted, so the next login
 * may be this boot's first. Returns 0, -ESRCH, or -ENOMEM. */
int recorder_drop_stage(Recorder *recorder, bool cut_short);

/* Counts a login that is not recorded, so that the next one is not this boot's first. */
void recorder_note_login(Recorder *recorder);

/* Drops the interval that began with the end of a stage, because no stage follows. */
void recorder_drop_interval(Recorder *recorder);

/* Sets the user of the stage that is being recorded: UID_INVALID if several users share it. */
void recorder_set_uid(Recorder *recorder, uint32_t uid);

/* Sets RecorderOptions.exact_kb from the next stage on. */
void recorder_set_exact(Recorder *recorder, unsigned kb);

/* Returns the number of applications that were started so far, also between stages. It counts exec
 * events except those of dynamic loaders and of headstart's own programs. */
uint64_t recorder_n_starts(const Recorder *recorder);

/* Returns one line that lists missing kernel features and privileges, or NULL. The line is meant
 * for a log message at start. Borrowed. */
const char *recorder_limits(const Recorder *recorder);
