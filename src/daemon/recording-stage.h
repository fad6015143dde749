/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The recording stage: decides which stages are recorded, writes their traces, and owns the
 * prefetcher, which works from the beginning of a session to its end. */

#include "base/vocabulary.h"
#include "daemon/arguments.h"
#include "daemon/prefetcher.h"
#include "daemon/stages.h"
#include "measure/machine-counters.h"
#include "state/rerecord.h"

typedef struct RecordingStage {
    const Arguments *arguments;
    Recorder *recorder;
    sd_event *event;
    const StageSource *stages;
    int root_fd; /* with --stage=auto */
    Rerecord rerecord;

    Stage stage;           /* the stage that is recorded; _STAGE_INVALID: none */
    bool automatic;        /* an automatic login */
    bool boot_suspended;   /* the boot was recorded, and the machine was suspended meanwhile */
    bool recorded;         /* the recording of `stage` goes on, … */
    uint32_t uid;          /* … and this is the user of its trace */
    MachineCounters begin; /* at the beginning of the stage */
    Prefetcher *prefetcher;
    SessionResults results; /* of the earlier prefetchers of this session */
    bool failed;            /* a trace could not be made or written */
} RecordingStage;

/* Begins a stage of that user (UID_INVALID: the user is not known, or there are several). The stage
 * is recorded if the options and `headstart rerecord` request it. Before that, requests that have
 * expired are dropped. `others`: users besides `uid` are logged in. Returns 0, or a negative errno
 * that was reported. */
int recording_stage_begin(RecordingStage *s, Stage stage, uint32_t uid, bool others);

/* Ends the recording, if there is one. Writes its trace and, with --stage=auto, adds the stage to
 * the history. With `drop` the stage was cut short, and both are omitted. Exception: a boot that
 * was over before headstartd was to start is added to the history (session_history_append_light()).
 * With --stage=auto both are also omitted if the machine was suspended during the boot or login, or
 * during the boot of an automatic login.
 * `settled_ago` is that of StageChange. Reports a failure and notes it in s->failed. The prefetcher
 * continues. */
void recording_stage_finish(RecordingStage *s, bool drop, usec_t settled_ago);

/* Ends the stage: calls recording_stage_finish() and ends the prefetcher. */
void recording_stage_end(RecordingStage *s, bool drop, usec_t settled_ago);

/* Replaces the prefetcher of the session by one for its present users; the parameters are those of
 * recording_stage_begin(). The old one saves what it has learned first. The recording continues,
 * and its trace still belongs to the user with whom it began. A failure is logged and has no other
 * effect. */
void recording_stage_change_users(RecordingStage *s, uint32_t uid, bool others);

/* Returns true if a login of this boot has ended, perhaps before headstartd was started. What such
 * a login has read is still in memory, also after a reboot of userspace. */
bool recording_stage_had_login(const Arguments *a);
