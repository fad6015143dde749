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
    touched_done(&s->touched);
    volume_snapshots_done(&s->snapshots);
}

void stage_record_begin(StageRecord *s, Stage stage, uint32_t uid, const Moment *start)
{
    sampling_done(&s->sampling);
    touched_done(&s->touched);
    s->replay_checked = s->replayed = false;
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
    s->n_samples = 0;
    s->sample_interval = s->next_sample = STAGE_SAMPLE_USEC;
}

bool stage_record_wants_sample(const StageRecord *s, usec_t boottime)
{
    return s->recording && s->stage != STAGE_SESSION &&
           boottime >= s->start.boottime + s->next_sample;
}

/* Removes every second sample, but keeps the last. */
static void thin_samples(StageRecord *s)
{
    for (size_t i = 0; i < s->n_samples / 2; i++)
        s->samples[i] = s->samples[2 * i + 1];
    s->n_samples /= 2;
    s->sample_interval *= 2;
}

void stage_record_add_sample(StageRecord *s, const Moment *now)
{
    const Moment *start = &s->start;
    const TraceSample *last = s->n_samples > 0 ? &s->samples[s->n_samples - 1] : NULL;
    TraceSample next = {
            .at = now->boottime - MIN(now->boottime, start->boottime),
            .busy = now->busy_usec - start->busy_usec,
            .stalled = now->stalled_usec - start->stalled_usec,
    };

    s->next_sample = next.at + s->sample_interval;
    if (start->busy_usec == UINT64_MAX || start->stalled_usec == UINT64_MAX ||
        now->busy_usec == UINT64_MAX || now->stalled_usec == UINT64_MAX ||
        now->busy_usec < start->busy_usec || now->stalled_usec < start->stalled_usec ||
        (last && (next.at <= last->at || next.busy < last->busy || next.stalled < last->stalled)))
        return;
    if (s->n_samples == TRACE_SAMPLES_MAX)
        thin_samples(s);
    s->samples[s->n_samples++] = next;
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
