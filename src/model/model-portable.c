/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The part of a model that is valid on another machine and identifies no user (model.h). */

#include "model/model-internal.h"

#include <string.h>

static void drop_touched(ModelStage *s)
{
    for (size_t i = 0; i < s->n_uses; i++)
        model_use_done(&s->uses[i]);
}

void model_drop_metadata(ModelStage *s)
{
    for (size_t i = 0; i < s->n_metadata; i++)
        model_metadata_done(&s->metadata[i]);
    s->n_metadata = 0;
}

/* Also removes the automatic logins of unknown users: only a user's own can be predicted. Those of
 * a user stay, because an administrator may import what this machine has learned before. `late`
 * stays, too: it tells whether the files of the stage lack the beginning of a boot. */
static void drop_machine_facts(ModelStage *s)
{
    s->timing = (ModelTiming){0};
    if (s->uid == UID_INVALID)
        s->autologins = (DecayedSum){0};
}

void model_drop_machine_facts(Model *m)
{
    for (size_t i = 0; i < m->n_stages; i++)
        drop_machine_facts(&m->stages[i]);
}

int model_drop_local_files(Model *m)
{
    char **to = calloc(m->n_files + 1, sizeof(*to));
    size_t n = m->n_files;
    int r = to ? 0 : -ENOMEM;

    for (size_t i = 0; r >= 0 && i < n; i++)
        if (!model_path_is_portable(m->files[i].path)) {
            to[i] = strdup("");
            r = to[i] ? 0 : -ENOMEM;
        }
    if (r >= 0)
        r = model_move_files(m, to);
    for (size_t i = 0; to && i < n; i++)
        free(to[i]);
    free(to);
    return r;
}

/* Returns a count of one machine that contributed to the sum. */
static DecayedSum one_machine(DecayedSum sum)
{
    return sum.current > 0 ? (DecayedSum){1, 0} : (DecayedSum){0, 1};
}

static void count_one_machine(ModelStage *s)
{
    s->machines = one_machine(s->sessions);
    for (size_t i = 0; i < s->n_applications; i++)
        s->applications[i].machines = one_machine(s->applications[i].active);
    for (size_t i = 0; i < s->n_uses; i++)
        s->uses[i].machines = one_machine(s->uses[i].used);
    for (size_t i = 0; i < s->n_files; i++)
        s->files[i].machines = one_machine(s->files[i].used);
}

/* Rounds the clock down to a day, within its generation, because it is the time of a single
 * session. Drops the offset of the wall clock. */
static void hide_last_session(Model *m)
{
    const usec_t day = 24 * USEC_PER_HOUR;
    usec_t rounded = m->clock - m->clock % day;

    while (rounded < m->clock && decayed_sum_generation(rounded, m->halflife_usec) < m->generation)
        rounded += USEC_PER_HOUR;
    m->clock = MIN(rounded, m->clock);
    m->clock_offset_usec = 0;
}

int model_make_portable(const Model *m, Model **ret)
{
    _cleanup_model_ Model *sum = model_new(m->halflife_usec);
    int r;

    if (!sum)
        return -ENOMEM;
    sum->generation = m->generation;
    sum->clock = m->clock;
    sum->clock_offset_usec = m->clock_offset_usec;
    for (Stage stage = 0; stage < _STAGE_MAX; stage++) {
        _cleanup_model_ Model *part = NULL, *both = NULL;

        r = model_sum_stages(m, 1U << stage, UID_INVALID, &part);
        if (r < 0)
            return r;
        if (part->n_stages == 0)
            continue;
        part->stages[0].stage = stage;
        model_drop_metadata(&part->stages[0]);
        drop_touched(&part->stages[0]);
        r = model_merge(sum, part, &both);
        if (r < 0)
            return r;
        model_free(sum);
        sum = TAKE_PTR(both);
    }
    model_copy_directories(sum, m);
    r = model_drop_local_files(sum);
    if (r < 0)
        return r;
    model_drop_machine_facts(sum);
    model_round_sums(sum);
    for (size_t i = 0; i < sum->n_stages; i++)
        count_one_machine(&sum->stages[i]);
    hide_last_session(sum);
    *ret = TAKE_PTR(sum);
    return 0;
}
