/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/stage-record.h"

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

void stage_record_begin(StageRecord *s, Stage stage, uint32_t uid, usec_t boottime, usec_t realtime)
{
    sampling_done(&s->sampling);
    s->recording = true;
    s->stage = stage;
    s->uid = uid;
    s->n_logins += stage == STAGE_LOGIN;
    s->n_overflows = s->n_own = 0;
    s->metadata_sampled = 0;
    s->start_boottime = boottime;
    s->start_realtime = realtime;
}
