/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Merging two models: every table is sorted, so each is one walk along both. */

#include "model/model-internal.h"

#include <string.h>

/* One of the two models on its way into the sum. */
typedef struct Side {
    const Model *m;
    uint64_t later;  /* generations by which its Fades must be seen from later */
    uint32_t *where; /* its files -> the sum's files */
} Side;

static Fade advance(const Side *s, Fade f)
{
    return fade_advance(f, s->later);
}

static uint32_t map_file(const Side *s, uint32_t file)
{
    return file == MODEL_NONE ? MODEL_NONE : s->where[file];
}

/* Walks along both sorted tables: -1 the next is a's, 1 b's, 0 both have it. */
static int pick(bool a_left, bool b_left, int order)
{
    return !a_left ? 1 : !b_left ? -1 : order < 0 ? -1 : order > 0 ? 1 : 0;
}

static int merge_files(Side *a, Side *b, Model *m)
{
    size_t i = 0, j = 0;

    if (grow_array(&m->files, &m->allocated_files, a->m->n_files + b->m->n_files,
                   sizeof(ModelFile)) < 0)
        return -ENOMEM;
    while (i < a->m->n_files || j < b->m->n_files) {
        const ModelFile *x = &a->m->files[i], *y = &b->m->files[j];
        bool both = i < a->m->n_files && j < b->m->n_files;
        int k = pick(i < a->m->n_files, j < b->m->n_files, both ? strcmp(x->path, y->path) : 0);
        const ModelFile *from = k <= 0 ? x : y;
        char *path = strdup(from->path);

        if (!path)
            return -ENOMEM;
        /* A path that was both: what was opened as a directory anywhere is one. */
        m->files[m->n_files] = (ModelFile){
                .path = path,
                .directory = k == 0 ? x->directory || y->directory : from->directory,
        };
        if (k <= 0)
            a->where[i++] = (uint32_t)m->n_files;
        if (k >= 0)
            b->where[j++] = (uint32_t)m->n_files;
        m->n_files++;
    }
    return 0;
}

static int order_u32(uint32_t x, uint32_t y)
{
    return x < y ? -1 : x > y;
}

static int merge_applications(const Side *a, const ModelStage *x, uint32_t *x_where, const Side *b,
                              const ModelStage *y, uint32_t *y_where, ModelStage *s)
{
    size_t i = 0, j = 0;

    if (grow_array(&s->applications, &s->allocated_applications,
                   x->n_applications + y->n_applications, sizeof(ModelApplication)) < 0)
        return -ENOMEM;
    while (i < x->n_applications || j < y->n_applications) {
        bool i_left = i < x->n_applications, j_left = j < y->n_applications;
        uint32_t fx = i_left ? map_file(a, x->applications[i].file) : 0;
        uint32_t fy = j_left ? map_file(b, y->applications[j].file) : 0;
        int k = pick(i_left, j_left, order_u32(fx, fy));
        Fade active = {0};

        if (k <= 0) {
            active = fade_add(active, advance(a, x->applications[i].active));
            x_where[i++] = (uint32_t)s->n_applications;
        }
        if (k >= 0) {
            active = fade_add(active, advance(b, y->applications[j].active));
            y_where[j++] = (uint32_t)s->n_applications;
        }
        s->applications[s->n_applications++] =
                (ModelApplication){.file = k <= 0 ? fx : fy, .active = active};
    }
    return 0;
}

static int merge_uses(const Side *a, const ModelStage *x, const uint32_t *x_where, const Side *b,
                      const ModelStage *y, const uint32_t *y_where, ModelStage *s)
{
    size_t i = 0, j = 0;

    if (grow_array(&s->uses, &s->allocated_uses, x->n_uses + y->n_uses, sizeof(ModelUse)) < 0)
        return -ENOMEM;
    while (i < x->n_uses || j < y->n_uses) {
        bool i_left = i < x->n_uses, j_left = j < y->n_uses;
        ModelUse u = {0}, v = {0}, w;
        int k;

        if (i_left)
            u = (ModelUse){x_where[x->uses[i].application], map_file(a, x->uses[i].file),
                           advance(a, x->uses[i].used)};
        if (j_left)
            v = (ModelUse){y_where[y->uses[j].application], map_file(b, y->uses[j].file),
                           advance(b, y->uses[j].used)};
        k = pick(i_left, j_left,
                 u.application != v.application ? order_u32(u.application, v.application)
                                                : order_u32(u.file, v.file));
        w = k < 0 ? u : v;
        if (k == 0)
            w.used = fade_add(u.used, v.used);
        i += k <= 0;
        j += k >= 0;
        if (!fade_is_zero(w.used))
            s->uses[s->n_uses++] = w;
    }
    return 0;
}

static int merge_stage_files(const Side *a, const ModelStage *x, const Side *b, const ModelStage *y,
                             ModelStage *s)
{
    static const Segments none = {0};
    size_t i = 0, j = 0;

    if (grow_array(&s->files, &s->allocated_files, x->n_files + y->n_files,
                   sizeof(ModelStageFile)) < 0)
        return -ENOMEM;
    while (i < x->n_files || j < y->n_files) {
        bool i_left = i < x->n_files, j_left = j < y->n_files;
        const ModelStageFile *u = &x->files[i], *v = &y->files[j];
        int k = pick(i_left, j_left,
                     i_left && j_left ? order_u32(map_file(a, u->file), map_file(b, v->file)) : 0);
        ModelStageFile o = {0};

        if (k <= 0) {
            o.file = map_file(a, u->file);
            o.used = advance(a, u->used);
            o.truth = advance(a, u->truth);
            o.first_use = advance(a, u->first_use);
        }
        if (k >= 0) {
            o.file = map_file(b, v->file);
            o.used = fade_add(o.used, advance(b, v->used));
            o.truth = fade_add(o.truth, advance(b, v->truth));
            o.first_use = fade_add(o.first_use, advance(b, v->first_use));
        }
        i += k <= 0;
        j += k >= 0;
        if (fade_is_zero(o.used))
            continue;
        if (segments_sum(k <= 0 ? &u->resident : &none, a->later, k >= 0 ? &v->resident : &none,
                         b->later, &o.resident) < 0)
            return -ENOMEM;
        s->files[s->n_files++] = o;
    }
    return 0;
}

static int merge_metadata(const Side *a, const ModelStage *x, const Side *b, const ModelStage *y,
                          ModelStage *s)
{
    static const Segments none = {0};
    size_t i = 0, j = 0;

    if (grow_array(&s->metadata, &s->allocated_metadata, x->n_metadata + y->n_metadata,
                   sizeof(ModelMetadata)) < 0)
        return -ENOMEM;
    while (i < x->n_metadata || j < y->n_metadata) {
        bool i_left = i < x->n_metadata, j_left = j < y->n_metadata;
        const ModelMetadata *u = &x->metadata[i], *v = &y->metadata[j];
        int k = pick(i_left, j_left, i_left && j_left ? strcmp(u->uuid, v->uuid) : 0);
        ModelMetadata *o = &s->metadata[s->n_metadata];

        *o = (ModelMetadata){0};
        if (k <= 0)
            o->truth = advance(a, u->truth);
        if (k >= 0)
            o->truth = fade_add(o->truth, advance(b, v->truth));
        i += k <= 0;
        j += k >= 0;
        if (fade_is_zero(o->truth))
            continue;
        o->uuid = strdup(k <= 0 ? u->uuid : v->uuid);
        if (!o->uuid)
            return -ENOMEM;
        s->n_metadata++;
        if (segments_sum(k <= 0 ? &u->ranges : &none, a->later, k >= 0 ? &v->ranges : &none,
                         b->later, &o->ranges) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* Applications whose sessions have all faded away, and then nobody's uses name them. */
static void drop_faded_applications(ModelStage *s, uint32_t *scratch)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_applications; i++) {
        scratch[i] = (uint32_t)n;
        if (!fade_is_zero(s->applications[i].active))
            s->applications[n++] = s->applications[i];
    }
    s->n_applications = n;
    for (size_t i = 0; i < s->n_uses; i++)
        s->uses[i].application = scratch[s->uses[i].application];
}

static int merge_stage(const Side *a, const ModelStage *x, const Side *b, const ModelStage *y,
                       Model *m)
{
    static const ModelStage none = {0};
    const ModelStage *first = x ? x : y;
    _cleanup_free_ uint32_t *x_where = NULL, *y_where = NULL, *scratch = NULL;
    ModelStage s = {.stage = first->stage, .uid = first->uid};
    int r;

    if (x) {
        s.sessions = advance(a, x->sessions);
        s.duration = advance(a, x->duration);
    }
    if (y) {
        s.sessions = fade_add(s.sessions, advance(b, y->sessions));
        s.duration = fade_add(s.duration, advance(b, y->duration));
    }
    if (fade_is_zero(s.sessions))
        return 0;
    x = x ? x : &none;
    y = y ? y : &none;
    x_where = calloc(x->n_applications + 1, sizeof(uint32_t));
    y_where = calloc(y->n_applications + 1, sizeof(uint32_t));
    scratch = calloc(x->n_applications + y->n_applications + 1, sizeof(uint32_t));
    r = x_where && y_where && scratch ? 0 : -ENOMEM;
    if (r >= 0)
        r = merge_applications(a, x, x_where, b, y, y_where, &s);
    if (r >= 0)
        r = merge_uses(a, x, x_where, b, y, y_where, &s);
    if (r >= 0)
        r = merge_stage_files(a, x, b, y, &s);
    if (r >= 0)
        r = merge_metadata(a, x, b, y, &s);
    if (r < 0) {
        model_stage_done(&s);
        return r;
    }
    drop_faded_applications(&s, scratch);
    m->stages[m->n_stages++] = s;
    return 0;
}

static int order_stages(const ModelStage *x, const ModelStage *y)
{
    return x->stage != y->stage ? order_u32(x->stage, y->stage) : order_u32(x->uid, y->uid);
}

static int merge_stages(const Side *a, const Side *b, Model *m)
{
    size_t i = 0, j = 0;

    if (grow_array(&m->stages, &m->allocated_stages, a->m->n_stages + b->m->n_stages,
                   sizeof(ModelStage)) < 0)
        return -ENOMEM;
    while (i < a->m->n_stages || j < b->m->n_stages) {
        bool i_left = i < a->m->n_stages, j_left = j < b->m->n_stages;
        const ModelStage *x = &a->m->stages[i], *y = &b->m->stages[j];
        int k = pick(i_left, j_left, i_left && j_left ? order_stages(x, y) : 0);
        int r = merge_stage(a, k <= 0 ? x : NULL, b, k >= 0 ? y : NULL, m);

        if (r < 0)
            return r;
        i += k <= 0;
        j += k >= 0;
    }
    return 0;
}

static int order_learned(const ModelLearned *x, const ModelLearned *y)
{
    if (x->start_realtime != y->start_realtime)
        return x->start_realtime < y->start_realtime ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The union, of which the newest are kept. */
static int merge_learned(const Model *a, const Model *b, Model *m)
{
    size_t i = 0, j = 0, n;

    if (grow_array(&m->learned, &m->allocated_learned, a->n_learned + b->n_learned,
                   sizeof(ModelLearned)) < 0)
        return -ENOMEM;
    while (i < a->n_learned || j < b->n_learned) {
        bool i_left = i < a->n_learned, j_left = j < b->n_learned;
        int k = pick(i_left, j_left,
                     i_left && j_left ? order_learned(&a->learned[i], &b->learned[j]) : 0);

        m->learned[m->n_learned++] = k <= 0 ? a->learned[i] : b->learned[j];
        i += k <= 0;
        j += k >= 0;
    }
    n = MIN(m->n_learned, (size_t)MODEL_LEARNED_MAX);
    if (n < m->n_learned)
        memmove(m->learned, m->learned + m->n_learned - n, n * sizeof(ModelLearned));
    m->n_learned = n;
    return 0;
}

/* Files that no stage names any more leave the table. */
static int drop_unused_files(Model *m)
{
    _cleanup_free_ uint32_t *where = calloc(m->n_files + 1, sizeof(uint32_t));
    size_t n = 0;

    if (!where)
        return -ENOMEM;
    for (size_t i = 0; i < m->n_stages; i++) {
        const ModelStage *s = &m->stages[i];

        for (size_t k = 0; k < s->n_applications; k++)
            if (s->applications[k].file != MODEL_NONE)
                where[s->applications[k].file] = 1;
        for (size_t k = 0; k < s->n_uses; k++)
            where[s->uses[k].file] = 1;
        for (size_t k = 0; k < s->n_files; k++)
            where[s->files[k].file] = 1;
    }
    for (size_t i = 0; i < m->n_files; i++) {
        bool used = where[i];

        where[i] = (uint32_t)n;
        if (used)
            m->files[n++] = m->files[i];
        else
            free(m->files[i].path);
    }
    m->n_files = n;
    for (size_t i = 0; i < m->n_stages; i++) {
        ModelStage *s = &m->stages[i];

        for (size_t k = 0; k < s->n_applications; k++)
            if (s->applications[k].file != MODEL_NONE)
                s->applications[k].file = where[s->applications[k].file];
        for (size_t k = 0; k < s->n_uses; k++)
            s->uses[k].file = where[s->uses[k].file];
        for (size_t k = 0; k < s->n_files; k++)
            s->files[k].file = where[s->files[k].file];
    }
    return 0;
}

int model_merge(const Model *a, const Model *b, Model **ret)
{
    _cleanup_model_ Model *m = model_new(a->halflife);
    _cleanup_free_ uint32_t *a_where = NULL, *b_where = NULL;
    Side sa, sb;
    int r;

    if (!m)
        return -ENOMEM;
    if (a->halflife != b->halflife)
        return -EINVAL;
    a_where = calloc(a->n_files + 1, sizeof(uint32_t));
    b_where = calloc(b->n_files + 1, sizeof(uint32_t));
    if (!a_where || !b_where)
        return -ENOMEM;
    m->generation = MAX(a->generation, b->generation);
    sa = (Side){a, m->generation - a->generation, a_where};
    sb = (Side){b, m->generation - b->generation, b_where};

    r = merge_files(&sa, &sb, m);
    if (r >= 0)
        r = merge_stages(&sa, &sb, m);
    if (r >= 0)
        r = merge_learned(a, b, m);
    if (r >= 0)
        r = drop_unused_files(m);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(m);
    return 0;
}

int model_prune(Model **m, double min_probability)
{
    _cleanup_model_ Model *empty = model_new((*m)->halflife), *kept = NULL;
    int r;

    if (!empty)
        return -ENOMEM;
    for (size_t i = 0; i < (*m)->n_stages; i++) {
        ModelStage *s = &(*m)->stages[i];
        _cleanup_free_ bool *keep = calloc((*m)->n_files + 1, sizeof(bool));
        size_t n = 0;

        if (!keep)
            return -ENOMEM;
        for (size_t k = 0; k < s->n_files; k++) {
            if (fade_ratio(s->files[k].used, s->sessions) >= min_probability) {
                keep[s->files[k].file] = true;
                s->files[n++] = s->files[k];
            } else
                segments_done(&s->files[k].resident);
        }
        s->n_files = n;
        n = 0;
        for (size_t k = 0; k < s->n_uses; k++)
            if (keep[s->uses[k].file])
                s->uses[n++] = s->uses[k];
        s->n_uses = n;
    }
    /* Merging with nothing drops the names that nobody uses any more. */
    r = model_merge(*m, empty, &kept);
    if (r < 0)
        return r;
    model_free(*m);
    *m = TAKE_PTR(kept);
    return 0;
}
