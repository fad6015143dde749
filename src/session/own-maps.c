/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "session/own-maps.h"

#include <math.h>
#include <string.h>

/* Everybody's share of an application's runs counts like this many sessions of the user. */
#define EVERYBODY_SESSIONS 2.0

void own_maps_done(OwnMaps *o)
{
    model_free(o->sum);
    free(o->files);
}

int own_maps_init(OwnMaps *o, const Model *model, const Model *all, uint32_t uid, unsigned stages)
{
    uint32_t at = 0;
    int r;

    if (uid == UID_INVALID)
        return 0;
    r = model_sum_stages(model, stages, uid, &o->sum);
    if (r < 0 || o->sum->n_stages == 0)
        return r;
    o->files = calloc(all->n_files + 1, sizeof(*o->files));
    if (!o->files)
        return -ENOMEM;
    for (uint32_t i = 0; i < all->n_files; i++) {
        int c = -1;

        while (at < o->sum->n_files && (c = strcmp(o->sum->files[at].path, all->files[i].path)) < 0)
            at++;
        o->files[i] = at < o->sum->n_files && c == 0 ? at : MODEL_NONE;
    }
    o->stage = &o->sum->stages[0];
    o->prior = EVERYBODY_SESSIONS * (double)decayed_sum_weight(model->clock, model->halflife_usec);
    return 0;
}

const ModelApplication *own_maps_application(OwnMaps *o, uint32_t file)
{
    const ModelStage *s = o->stage;

    if (!s || file == MODEL_NONE || o->files[file] == MODEL_NONE)
        return NULL;
    while (o->application < s->n_applications &&
           s->applications[o->application].file < o->files[file])
        o->application++;
    return o->application < s->n_applications &&
                           s->applications[o->application].file == o->files[file]
                   ? &s->applications[o->application]
                   : NULL;
}

double own_maps_use_chance(OwnMaps *o, const ModelApplication *own, const ModelApplication *a,
                           const ModelUse *u)
{
    double all = decayed_sum_ratio(u->used, a->active), used = 0;
    const ModelStage *s = o->stage;
    uint32_t file;

    if (!own)
        return all;
    file = o->files[u->file];
    while (o->use < s->n_uses && file != MODEL_NONE &&
           (s->uses[o->use].application < o->application ||
            (s->uses[o->use].application == o->application && s->uses[o->use].file < file)))
        o->use++;
    if (o->use < s->n_uses && s->uses[o->use].application == o->application &&
        s->uses[o->use].file == file)
        used = decayed_sum_value(s->uses[o->use].used);
    return fmin((used + o->prior * all) / (decayed_sum_value(own->active) + o->prior), 1);
}

const ModelResidency *own_maps_residency(const OwnMaps *o, const ModelStageFile *all)
{
    const ModelResidency *best = model_best_residency(all), *own;
    const ModelStage *s = o->stage;
    uint32_t file = s ? o->files[all->file] : MODEL_NONE;
    size_t low = 0, high = s ? s->n_files : 0;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (s->files[mid].file < file)
            low = mid + 1;
        else
            high = mid;
    }
    if (file == MODEL_NONE || low == s->n_files || s->files[low].file != file)
        return best;
    own = model_best_residency(&s->files[low]);
    return own->ranges.n > 0 && own - s->files[low].residency <= best - all->residency ? own : best;
}
