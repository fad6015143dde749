/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "model/model-internal.h"

#include <string.h>

int model_sum_stages(const Model *m, unsigned stages, uint32_t uid, Model **ret)
{
    _cleanup_model_ Model *sum = model_new(m->halflife_usec);

    if (!sum)
        return -ENOMEM;
    sum->generation = m->generation;
    for (size_t i = 0; i < m->n_stages; i++) {
        _cleanup_model_ Model *next = NULL;
        ModelStage borrowed;
        Model one = *m;
        int r;

        if (!(stages & 1U << m->stages[i].stage) || (uid != UID_INVALID && m->stages[i].uid != uid))
            continue;
        /* `one` becomes the model with this stage alone. All stages get the same name and user, so
         * that merging adds them up. */
        borrowed = m->stages[i];
        borrowed.stage = STAGE_SESSION;
        borrowed.uid = UID_INVALID;
        one.stages = &borrowed;
        one.n_stages = 1;
        one.n_learned = 0;
        one.chains = NULL;
        r = model_merge(sum, &one, &next);
        if (r < 0)
            return r;
        model_free(sum);
        sum = TAKE_PTR(next);
    }
    model_copy_directories(sum, m);
    *ret = TAKE_PTR(sum);
    return 0;
}

/* A directory counts as listed if it was opened in at least this part of the sessions that needed
 * it. */
#define LISTED_MIN 0.5

double model_opened_share(const ModelStageFile *f)
{
    return 1 - decayed_sum_ratio(f->looked_up, f->used);
}

usec_t model_first_use(const ModelStageFile *f)
{
    double opened = model_opened_share(f);
    double mean = (double)decayed_sum_mean_usec(f->first_use, f->used);

    return opened > 0 ? (usec_t)fmin(mean / opened, 0x1p62) : 0;
}

int model_predict_file(const Model *m, const ModelStageFile *f, const ModelResidency *known,
                       double needed, double data, usec_t first_use, Prediction *p)
{
    const WeightedRanges *ranges = &known->ranges;
    PredictedFile *o;

    if (grow_array(&p->files, &p->allocated_files, p->n_files + 1, sizeof(PredictedFile)) < 0)
        return -ENOMEM;
    o = &p->files[p->n_files];
    *o = (PredictedFile){
            .path = strdup(m->files[f->file].path),
            .directory = m->files[f->file].directory && model_opened_share(f) >= LISTED_MIN,
            .probability = needed,
            .first_use = first_use,
    };
    if (!o->path)
        return -ENOMEM;
    p->n_files++;
    if (o->directory || ranges->n == 0)
        return 0;
    o->maps = calloc(ranges->n, sizeof(PredictedRange));
    if (!o->maps)
        return -ENOMEM;
    for (size_t i = 0; i < ranges->n; i++) {
        const WeightedRange *g = &ranges->ranges[i];

        o->maps[o->n_maps++] = (PredictedRange){
                .offset = g->offset,
                .length = g->length,
                .probability = data * decayed_sum_ratio(g->weight, known->sessions),
        };
    }
    return 0;
}

/* Returns true if the stage has metadata of this filesystem from sessions without replay. */
static bool is_observed(const ModelStage *s, const char *uuid)
{
    for (size_t i = 0; i < s->n_metadata; i++)
        if (!s->metadata[i].assumed && !s->metadata[i].application &&
            strcmp(s->metadata[i].uuid, uuid) == 0)
            return true;
    return false;
}

int model_predict_metadata(const ModelMetadata *d, PredictedMetadata **metadata, size_t *n,
                           size_t *allocated)
{
    if (grow_array(metadata, allocated, *n + d->ranges.n, sizeof(PredictedMetadata)) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < d->ranges.n; i++) {
        const WeightedRange *g = &d->ranges.ranges[i];
        char *uuid = strdup(d->uuid);

        if (!uuid)
            return -ENOMEM;
        (*metadata)[(*n)++] = (PredictedMetadata){
                .uuid = uuid,
                .assumed = d->assumed,
                .range = {g->offset, g->length, decayed_sum_ratio(g->weight, d->observed)},
        };
    }
    return 0;
}

bool model_boots_are_late(const Model *m)
{
    for (size_t i = 0; i < m->n_stages; i++)
        if (m->stages[i].stage == STAGE_BOOT)
            return 2 * decayed_sum_value(m->stages[i].late) >
                   decayed_sum_value(m->stages[i].sessions);
    return false;
}

bool model_predict_autologin(const Model *m, uint32_t *ret_uid)
{
    double all = 0, most = 0;
    uint32_t uid = UID_INVALID;

    for (size_t i = 0; i < m->n_stages; i++) {
        const ModelStage *s = &m->stages[i];
        double n = decayed_sum_value(s->autologins);

        if (s->stage != STAGE_LOGIN || s->uid == UID_INVALID)
            continue;
        all += decayed_sum_value(s->sessions);
        if (n > most) {
            most = n;
            uid = s->uid;
        }
    }
    if (2 * most <= all || all <= 0)
        return false;
    *ret_uid = uid;
    return true;
}

int model_predict_stage(const Model *m, Stage stage, uint32_t uid, Prediction **ret)
{
    _cleanup_prediction_ Prediction *p = calloc(1, sizeof(Prediction));
    _cleanup_model_ Model *sum = NULL;
    const ModelStage *s;
    int r;

    if (!p)
        return -ENOMEM;
    p->stage = stage;
    r = model_sum_stages(m, 1U << stage, uid, &sum);
    if (r < 0)
        return r;
    if (sum->n_stages == 0) {
        *ret = TAKE_PTR(p);
        return 0;
    }
    s = &sum->stages[0];
    p->horizon = decayed_sum_mean_usec(s->duration, s->sessions);
    p->ready = decayed_sum_mean_usec(s->timing.ready, s->timing.sessions);
    p->stalled = decayed_sum_mean_usec(s->timing.stalled, s->timing.sessions);
    for (size_t i = 0; r >= 0 && i < s->n_files; i++) {
        const ModelStageFile *f = &s->files[i];
        double needed = decayed_sum_ratio(f->used, s->sessions);

        r = model_predict_file(sum, f, model_best_residency(f), needed,
                               needed * model_opened_share(f), model_first_use(f), p);
    }
    for (size_t i = 0; r >= 0 && i < s->n_metadata; i++) {
        const ModelMetadata *d = &s->metadata[i];

        if (d->application)
            continue;
        if (d->assumed && is_observed(s, d->uuid))
            r = model_predict_metadata(d, &p->assumed, &p->n_assumed, &p->allocated_assumed);
        else
            r = model_predict_metadata(d, &p->metadata, &p->n_metadata, &p->allocated_metadata);
    }
    if (r < 0)
        return r;
    *ret = TAKE_PTR(p);
    return 0;
}
