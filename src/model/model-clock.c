/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Handles clocks that jump and machines without a clock, as model.h describes. */

#include "model/model-internal.h"

static usec_t span(const Model *m)
{
    return m->halflife_usec * DECAYED_SUM_SPAN;
}

/* Returns true if the time is within a plausible step of the model's clock. The clock's offset is
 * not added. */
static bool is_near_clock(const Model *m, usec_t t)
{
    return (t > m->clock ? t - m->clock : m->clock - t) <= decay_clock_gap(m->halflife_usec);
}

static usec_t effective_now(const Model *m, usec_t now_realtime)
{
    usec_t wall = model_wall_clock(m);

    if (now_realtime < MODEL_CLOCK_MIN)
        return MAX(wall, MODEL_CLOCK_MIN);
    if (now_realtime < wall && wall - now_realtime <= span(m))
        return wall;
    return now_realtime;
}

/* Returns the time of a trace on the wall clock (model.h, the model's clock). */
static usec_t effective_start(usec_t start_realtime, usec_t now_realtime)
{
    return start_realtime < MODEL_CLOCK_MIN ? now_realtime : MIN(start_realtime, now_realtime);
}

usec_t model_observe_clock(const Model *m, usec_t start_realtime, usec_t now_realtime,
                           DecayClock *ret)
{
    usec_t now = effective_now(m, now_realtime), at;
    usec_t start = effective_start(start_realtime, now);

    *ret = (DecayClock){m->clock, m->clock_offset_usec};
    /* A trace shows the present wall clock if it was made about now, or shortly after the latest
     * session. The second case matters if the wall clock ran ahead and was then set back: its time
     * at the latest session still counts as now (effective_now()), so a new trace seems to be old.
     */
    if (now - start <= decay_clock_gap(m->halflife_usec) ||
        (start > m->clock && is_near_clock(m, start)))
        return decay_clock_observe(ret, start, m->halflife_usec);
    /* An old trace says nothing about the present clock. */
    at = start > m->clock ? start - (usec_t)m->clock_offset_usec : start;
    if (at > ret->latest)
        ret->latest = at;
    return at;
}

static void rescale_ranges(WeightedRanges *s, uint64_t to, uint64_t from)
{
    for (size_t i = 0; i < s->n; i++)
        s->ranges[i].weight = decayed_sum_rescale(s->ranges[i].weight, to, from);
}

/* Moves the count of machines to the newest generation, in which all sums lie now. A count stays
 * within its sum. */
static DecayedSum settle_machines(DecayedSum machines, DecayedSum sum)
{
    return (DecayedSum){MIN(model_count_machines(machines), sum.current), 0};
}

static void rescale_application(ModelApplication *a, uint64_t to, uint64_t from)
{
    a->active = decayed_sum_rescale(a->active, to, from);
    a->launched = decayed_sum_rescale(a->launched, to, from);
    a->machines = settle_machines(a->machines, a->active);
}

static void rescale_use(ModelUse *u, uint64_t to, uint64_t from)
{
    u->used = decayed_sum_rescale(u->used, to, from);
    u->launched = decayed_sum_rescale(u->launched, to, from);
    u->delay = decayed_sum_rescale(u->delay, to, from);
    u->machines = settle_machines(u->machines, u->used);
    if (u->touched) {
        u->touched->sessions = decayed_sum_rescale(u->touched->sessions, to, from);
        rescale_ranges(&u->touched->ranges, to, from);
    }
}

static void rescale_stage(ModelStage *s, uint64_t to, uint64_t from)
{
    s->sessions = decayed_sum_rescale(s->sessions, to, from);
    s->duration = decayed_sum_rescale(s->duration, to, from);
    s->late = decayed_sum_rescale(s->late, to, from);
    s->autologins = decayed_sum_rescale(s->autologins, to, from);
    s->machines = settle_machines(s->machines, s->sessions);
    s->timing.sessions = decayed_sum_rescale(s->timing.sessions, to, from);
    s->timing.ready = decayed_sum_rescale(s->timing.ready, to, from);
    s->timing.stalled = decayed_sum_rescale(s->timing.stalled, to, from);
    for (size_t i = 0; i < s->n_applications; i++)
        rescale_application(&s->applications[i], to, from);
    for (size_t i = 0; i < s->n_uses; i++)
        rescale_use(&s->uses[i], to, from);
    for (size_t i = 0; i < s->n_files; i++) {
        ModelStageFile *f = &s->files[i];

        f->used = decayed_sum_rescale(f->used, to, from);
        f->looked_up = decayed_sum_rescale(f->looked_up, to, from);
        f->first_use = decayed_sum_rescale(f->first_use, to, from);
        f->machines = settle_machines(f->machines, f->used);
        for (Residency k = 0; k < _RESIDENCY_MAX; k++) {
            ModelResidency *known = &f->residency[k];

            known->sessions = decayed_sum_rescale(known->sessions, to, from);
            rescale_ranges(&known->ranges, to, from);
        }
    }
    for (size_t i = 0; i < s->n_metadata; i++) {
        s->metadata[i].observed = decayed_sum_rescale(s->metadata[i].observed, to, from);
        rescale_ranges(&s->metadata[i].ranges, to, from);
    }
}

/* Moves the model's clock to `clock`. The relative weights of the sessions stay the same. */
static int move_clock(Model **m, usec_t clock)
{
    _cleanup_model_ Model *empty = NULL, *copy = NULL, *settled = NULL;
    Chains *chains;
    uint64_t from, to;
    int r;

    empty = model_new((*m)->halflife_usec);
    if (!empty)
        return -ENOMEM;
    chains = TAKE_PTR((*m)->chains);
    r = model_merge(*m, empty, &copy);
    if (r >= 0) {
        from = decayed_sum_weight(copy->clock, copy->halflife_usec);
        to = decayed_sum_weight(clock, copy->halflife_usec);
        for (size_t i = 0; i < copy->n_stages; i++)
            rescale_stage(&copy->stages[i], to, from);
        for (size_t i = 0; i < copy->n_files; i++)
            copy->files[i].as_directory =
                    decayed_sum_rescale(copy->files[i].as_directory, to, from);
        for (size_t i = 0; i < copy->n_learned; i++)
            copy->learned[i].at = MIN(copy->learned[i].at, clock);
        if (copy->n_learned > 0)
            qsort(copy->learned, copy->n_learned, sizeof(ModelLearned), model_compare_learned);
        copy->clock = clock;
        copy->clock_offset_usec = 0;
        copy->generation = decayed_sum_generation(clock, copy->halflife_usec);
        /* Merging drops sums that the new scale has no room for. */
        r = model_merge(copy, empty, &settled);
    }
    if (r < 0) {
        (*m)->chains = chains;
        return r;
    }
    settled->chains = chains;
    model_free(*m);
    *m = TAKE_PTR(settled);
    return 0;
}

int model_settle_clock(Model **m, usec_t now_realtime)
{
    const DecayClock clock = {(*m)->clock, (*m)->clock_offset_usec};
    usec_t settled = decay_clock_settled(&clock, now_realtime, span(*m));
    int r;

    if (now_realtime < MODEL_CLOCK_MIN)
        return 0;
    /* While a session of the chains is under way, the session cycle maintains their clock. */
    r = (*m)->chains ? chains_settle_clock((*m)->chains, now_realtime) : 0;
    if (r < 0 && r != -EBUSY)
        return r;
    return settled == (*m)->clock ? 0 : move_clock(m, settled);
}
