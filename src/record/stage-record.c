/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/stage-record.h"

#include <unistd.h>

int stage_record_init(StageRecord *s)
{
    *s = (StageRecord){.uid = UID_INVALID, .log = event_log_new()};
    return s->log ? 0 : -ENOMEM;
}

void stage_record_done(StageRecord *s)
{
    event_log_free(s->log);
    sampling_done(&s->sampling);
    volume_snapshots_done(&s->snapshots);
}

void stage_record_begin(StageRecord *s, Stage stage, uint32_t uid, const Moment *start)
{
    sampling_done(&s->sampling);
    s->recording = true;
    s->stage = stage;
    s->uid = uid;
    s->n_logins += stage == STAGE_LOGIN;
    s->n_overflows = s->n_own = 0;
    s->start = *start;
    if (!s->interval)
        s->zero_boottime = start->boottime;
    s->interval = false;
    s->metadata_sampled = start->boottime - s->zero_boottime;
    s->timing = (TraceTiming){0};
}

usec_t stage_record_time(const StageRecord *s, usec_t at)
{
    usec_t lead = s->start.boottime - s->zero_boottime;

    return at > lead ? at - lead : 0;
}

void stage_record_note_ready(StageRecord *s, const Moment *now, usec_t age)
{
    const Moment *start = &s->start;
    long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    usec_t ready = now->boottime - MIN(now->boottime, age);

    if (s->timing.ready > 0 || ready <= start->boottime || start->stalled_usec == UINT64_MAX ||
        now->stalled_usec == UINT64_MAX || now->stalled_usec < start->stalled_usec)
        return;
    ready -= start->boottime;
    s->timing = (TraceTiming){
            .ready = ready,
            .stalled = MIN(now->stalled_usec - start->stalled_usec, ready),
            .n_cpus = (uint32_t)MIN(MAX(n_cpus, 1L), (long)TRACE_CPUS_MAX),
    };
    if (start->busy_usec != UINT64_MAX && now->busy_usec != UINT64_MAX &&
        now->busy_usec > start->busy_usec)
        s->timing.busy = now->busy_usec - start->busy_usec;
}
