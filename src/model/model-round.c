/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Rounds the sums of a model that leaves the machine (model_round_sums()). */

#include "model/model-internal.h"

/* Longer means can only come from a forged file: no stage is longer than twelve days. */
#define MEAN_MSEC_MAX ((uint64_t)1 << 30)

/* Returns the rounded mean in milliseconds of `count` times whose sum is `sum`; 0 without times.
 * The quotient is rounded down before decayed_sum_round_number(), which does not change the
 * result, because all limits between two results are integers from 16 ms on. */
static uint64_t rounded_mean_msec(uint64_t sum, uint64_t count)
{
    uint64_t mean, rest;

    if (count == 0)
        return 0;
    mean = sum / count;
    rest = sum % count;
    if (mean >= MEAN_MSEC_MAX >> DECAYED_SUM_BITS)
        return MEAN_MSEC_MAX;
    /* Divides sum * 2^DECAYED_SUM_BITS by count, although that product does not fit. */
    for (unsigned i = 0; i < DECAYED_SUM_BITS; i++) {
        bool one = rest >= count - rest;

        mean = 2 * mean + one;
        rest = one ? rest - (count - rest) : 2 * rest;
    }
    if (mean < 1U << DECAYED_SUM_ROUNDED_BITS && rest >= count - rest)
        mean++;
    return decayed_sum_round_number(mean);
}

/* Returns the sum of `rounded` times that all have the rounded mean of the `count` times in `sum`.
 * A sum that was only rounded would show the weight of a session again: divided by its time, which
 * sums of other files or the user may tell. If `count` is rounded already, a second call does not
 * change the sum: it finds the same mean, or one whose sum is the same. */
static DecayedSum round_times(DecayedSum sum, DecayedSum count, DecayedSum rounded)
{
    return (DecayedSum){
            decayed_sum_of_time(rounded_mean_msec(sum.current, count.current), rounded.current),
            decayed_sum_of_time(rounded_mean_msec(sum.previous, count.previous), rounded.previous),
    };
}

/* Returns whole - part, of which `part` is a part. */
static DecayedSum without(DecayedSum whole, DecayedSum part)
{
    return (DecayedSum){whole.current - part.current, whole.previous - part.previous};
}

static void round_use(ModelUse *u)
{
    DecayedSum launched = decayed_sum_round(u->launched);

    u->delay = round_times(u->delay, u->launched, launched);
    u->launched = launched;
    u->used = decayed_sum_round(u->used);
    if (u->touched) {
        u->touched->sessions = decayed_sum_round(u->touched->sessions);
        weighted_ranges_round(&u->touched->ranges);
    }
}

static void round_file(ModelStageFile *f)
{
    DecayedSum used = decayed_sum_round(f->used), looked_up = decayed_sum_round(f->looked_up);

    f->first_use =
            round_times(f->first_use, without(f->used, f->looked_up), without(used, looked_up));
    f->used = used;
    f->looked_up = looked_up;
    for (Residency i = 0; i < _RESIDENCY_MAX; i++) {
        f->residency[i].sessions = decayed_sum_round(f->residency[i].sessions);
        weighted_ranges_round(&f->residency[i].ranges);
    }
}

static void round_metadata(ModelMetadata *d)
{
    d->observed = decayed_sum_round(d->observed);
    weighted_ranges_round(&d->ranges);
}

static void round_stage(ModelStage *s)
{
    DecayedSum sessions = decayed_sum_round(s->sessions);
    DecayedSum timed = decayed_sum_round(s->timing.sessions);

    s->duration = round_times(s->duration, s->sessions, sessions);
    s->sessions = sessions;
    s->late = decayed_sum_round(s->late);
    s->autologins = decayed_sum_round(s->autologins);
    s->timing.ready = round_times(s->timing.ready, s->timing.sessions, timed);
    s->timing.stalled = round_times(s->timing.stalled, s->timing.sessions, timed);
    s->timing.sessions = timed;
    for (size_t i = 0; i < s->n_applications; i++) {
        s->applications[i].active = decayed_sum_round(s->applications[i].active);
        s->applications[i].launched = decayed_sum_round(s->applications[i].launched);
    }
    for (size_t i = 0; i < s->n_uses; i++)
        round_use(&s->uses[i]);
    for (size_t i = 0; i < s->n_files; i++)
        round_file(&s->files[i]);
    for (size_t i = 0; i < s->n_metadata; i++)
        round_metadata(&s->metadata[i]);
}

void model_round_sums(Model *m)
{
    for (size_t i = 0; i < m->n_files; i++)
        m->files[i].as_directory = decayed_sum_round(m->files[i].as_directory);
    for (size_t i = 0; i < m->n_stages; i++)
        round_stage(&m->stages[i]);
}
