/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes the timeline of a recorded stage, or of the start of an application in it, from its trace.
 * Pure. */

#include "measure/launch-record.h"
#include "pack/pack.h"
#include "report/timeline.h"
#include "trace/trace.h"

/* Called for a file of the trace whose position is not in the pack. Sets *ret_place to the position
 * of the file on its device, and *ret_length to the number of bytes that are contiguous there.
 * `path` is absolute, below the recorded root. Returns false if the position is not known. */
typedef bool (*file_place_t)(void *arg, const TraceFile *f, const char *path, uint64_t *ret_place,
                             uint64_t *ret_length);

typedef struct TimelineSources {
    const Trace *trace;
    const Pack *pack;   /* of the trace's stage, or with `launch` the launch set; NULL: none */
    file_place_t place; /* NULL: only positions in the pack are known */
    void *place_arg;
    usec_t replay_start, replay_end; /* of `pack`; CLOCK_BOOTTIME; 0: not known */
    const bool
            *chosen; /* for each application of the trace: draw its opens; NULL: draw all opens */
    usec_t from, duration; /* the part of the stage that is drawn; duration 0: the whole stage */
    bool launch; /* the part is a start of `application` (index in the trace) in a session */
    uint32_t application;
    LaunchReplayed replayed; /* whether `pack` was replayed at this start; _LAUNCH_REPLAYED_INVALID:
                                not known */
} TimelineSources;

/* Adds the first open of each file, the applications and the marks. A file counts as prepared if
 * the session was replayed and the pack has the file. For a start it counts if the launch set has
 * the file, whether the set was replayed or not. The caller frees *ret with timeline_done().
 * Returns 0 or -ENOMEM. */
int timeline_from_trace(const TimelineSources *s, Timeline *ret);

/* Returns the begin and the end of the replay, both since the start of the stage or, with `launch`,
 * since `from`; an end of 0 means that the replay ended before the stage. Returns false if nothing
 * was replayed or the time is not known. */
bool timeline_replay_time(const TimelineSources *s, usec_t *ret_start, usec_t *ret_end);
