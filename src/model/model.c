/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "model/model.h"

#include "model/model-internal.h"

#include <string.h>

void model_use_done(ModelUse *u)
{
    if (u->touched)
        weighted_ranges_done(&u->touched->ranges);
    free(u->touched);
    u->touched = NULL;
}

void model_stage_file_done(ModelStageFile *f)
{
    for (Residency i = 0; i < _RESIDENCY_MAX; i++)
        weighted_ranges_done(&f->residency[i].ranges);
}

void model_metadata_done(ModelMetadata *d)
{
    free(d->uuid);
    free(d->application);
    weighted_ranges_done(&d->ranges);
}

int model_compare_metadata(const void *a, const void *b)
{
    const ModelMetadata *x = a, *y = b;
    int c = strcmp(x->uuid, y->uuid);

    c = c != 0 ? c : x->assumed - y->assumed;
    if (c != 0 || !x->application || !y->application)
        return c != 0 ? c : !!x->application - !!y->application;
    return strcmp(x->application, y->application);
}

void model_stage_done(ModelStage *s)
{
    for (size_t i = 0; i < s->n_files; i++) {
        model_stage_file_done(&s->files[i]);
    }
    for (size_t i = 0; i < s->n_metadata; i++)
        model_metadata_done(&s->metadata[i]);
    for (size_t i = 0; i < s->n_uses; i++)
        model_use_done(&s->uses[i]);
    free(s->applications);
    free(s->uses);
    free(s->files);
    free(s->metadata);
    *s = (ModelStage){0};
}

Model *model_new(usec_t halflife_usec)
{
    Model *m = calloc(1, sizeof(Model));

    if (m)
        m->halflife_usec = halflife_usec;
    return m;
}

Model *model_free(Model *m)
{
    if (!m)
        return NULL;
    for (size_t i = 0; i < m->n_files; i++)
        free(m->files[i].path);
    for (size_t i = 0; i < m->n_stages; i++)
        model_stage_done(&m->stages[i]);
    free(m->files);
    free(m->stages);
    free(m->learned);
    chains_free(m->chains);
    free(m);
    return NULL;
}

uint32_t model_find_file(const Model *m, const char *path)
{
    size_t lo = 0, hi = m->n_files;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(m->files[mid].path, path);

        if (c == 0)
            return (uint32_t)mid;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return MODEL_NONE;
}

int model_compare_uses(const void *a, const void *b)
{
    const ModelUse *x = a, *y = b;

    if (x->application != y->application)
        return x->application < y->application ? -1 : 1;
    return x->file < y->file ? -1 : x->file > y->file;
}

static int compare_applications(const void *a, const void *b)
{
    uint32_t x = ((const ModelApplication *)a)->file, y = ((const ModelApplication *)b)->file;

    return x < y ? -1 : x > y;
}

const ModelApplication *model_find_application(const ModelStage *s, uint32_t file)
{
    const ModelApplication key = {.file = file};

    return s->n_applications == 0 ? NULL
                                  : bsearch(&key, s->applications, s->n_applications, sizeof(key),
                                            compare_applications);
}

ModelUse *model_find_use(const ModelStage *s, uint32_t application, uint32_t file)
{
    const ModelUse key = {.application = application, .file = file};

    return s->n_uses == 0 ? NULL
                          : bsearch(&key, s->uses, s->n_uses, sizeof(key), model_compare_uses);
}

double model_sessions(const Model *m, const ModelStage *s, usec_t now_realtime)
{
    usec_t now = now_realtime > model_wall_clock(m) ? now_realtime - (usec_t)m->clock_offset_usec
                                                    : m->clock;
    uint64_t generation = decayed_sum_generation(now, m->halflife_usec);
    DecayedSum sum = s->sessions;

    if (generation > m->generation)
        sum = decayed_sum_advance(sum, generation - m->generation);
    return decayed_sum_value(sum) / (double)decayed_sum_weight(now, m->halflife_usec);
}
