/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The record of one stage: the observer, the sampling and the snapshots fill it while the stage
 * runs, and the trace builder reads it when the stage has ended. Between stages its log contains
 * the executables of the running processes and, in an interval, the opens. */

#include "base/uid.h"
#include "base/vocabulary.h"
#include "observe/event-log.h"
#include "observe/touched.h"
#include "observe/user-shares.h"
#include "observe/volume-snapshots.h"
#include "record/moment.h"
#include "record/sampling.h"
#include "trace/trace.h"

typedef struct StageRecord {
    bool recording; /* a stage runs */
    bool interval;  /* no stage runs, and what is opened belongs to the next one */
    Stage stage;
    uint32_t uid; /* user of the login or session; UID_INVALID: none, or unknown */
    Moment start;
    usec_t zero_boottime; /* the zero of the times of events and runs: `start`, or earlier if an
                             interval preceded the stage */
    TraceTiming timing;
    TraceSample samples[TRACE_SAMPLES_MAX]; /* of CPU and pressure */
    size_t n_samples;
    usec_t sample_interval, next_sample; /* next_sample: since the stage's start */
    unsigned n_logins; /* that began since the recorder was started, this one included; and one if
                          a login of this boot ended before */

    EventLog *log;
    UserShares shares; /* the users' parts of the log and of the trace */
    Sampling sampling;
    Touched touched;
    bool replay_checked, replayed; /* was a pack replayed, as far as it is known */
    usec_t metadata_sampled;       /* when the metadata was last sampled, since `zero_boottime` */
    VolumeSnapshots snapshots;

    uint64_t n_overflows; /* of the event queue */
    uint64_t n_own;       /* opens by headstart itself, left out */

    /* Facts about the recording itself. */
    bool residency_known; /* the resident pages of other users' files can be observed */
    bool exact;           /* read-ahead is lowered */
    bool late; /* the boot began before the recording: no initrd has marked the root filesystem */
    bool has_connector; /* true: the proc connector reports processes; false: they are read from
                           /proc */
} StageRecord;

/* Makes an empty record. Returns 0 or -ENOMEM. */
int stage_record_init(StageRecord *s);
void stage_record_done(StageRecord *s);

/* Begins a new stage: no samples, counters 0. After an interval the log and the zero of its times
 * stay. If no interval preceded the stage, the caller has emptied the log. */
void stage_record_begin(StageRecord *s, Stage stage, uint32_t uid, const Moment *start);

/* Converts a time since `zero_boottime` to the time since the stage began. The result for a time in
 * the interval before the stage is 0. */
usec_t stage_record_time(const StageRecord *s, usec_t at);

/* The time between two samples at the beginning of a stage. */
#define STAGE_SAMPLE_USEC (100 * USEC_PER_MSEC)

/* Returns true if a sample is due. Sessions have no samples, because they are long. */
bool stage_record_wants_sample(const StageRecord *s, usec_t boottime);

/* Adds a sample. If there are TRACE_SAMPLES_MAX samples, it first drops every second one and
 * doubles the time between samples, so that a stage of any length is sampled as a whole. */
void stage_record_add_sample(StageRecord *s, const Moment *now);

/* Notes that the point which the user waits for was reached `age` before `now`. Only the first call
 * of a stage counts. The caller should call the function at once, because the totals in `now` count
 * as the totals at that point. */
void stage_record_note_ready(StageRecord *s, const Moment *now, usec_t age);

/* Returns true if the trace leaves out what the user of that row opens and runs, because the stage
 * is the login or session of one user, and the row belongs to another person. The stage's user does
 * not need those files. */
static inline bool stage_record_leaves_out(const StageRecord *s, uint16_t row)
{
    uint32_t uid = s->shares.users[row].uid;

    return s->stage != STAGE_BOOT && s->uid != UID_INVALID && uid != s->uid && uid_is_person(uid);
}
