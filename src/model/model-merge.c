/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Merges two models. Every table is sorted, so one walk along both tables merges it. This file has
 * over 500 lines because each table has its walk, and all walks must drop and add by the same
 * rules. */

#include "model/model-internal.h"

#include <string.h>

/* One of the two models that are merged. */
typedef struct Side {
    const Model *m;
    uint64_t later;  /* generations from its clock to the clock of the sum */
    uint32_t *where; /* maps its files to the files of the sum */
} Side;

static DecayedSum advance(const Side *s, DecayedSum f)
{
    return decayed_sum_advance(f, s->later);
}

static uint32_t map_file(const Side *s, uint32_t file)
{
    return file == MODEL_NONE ? MODEL_NONE : s->where[file];
}

/* Compares the next rows of two sorted tables. Returns -1 if the row of the first table comes next,
 * 1 if that of the second does, 0 if both tables have the row. */
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
        /* A table without rows is NULL, from which no address may be computed. */
        const ModelFile *x = i < a->m->n_files ? &a->m->files[i] : NULL;
        const ModelFile *y = j < b->m->n_files ? &b->m->files[j] : NULL;
        int k = pick(x, y, x && y ? strcmp(x->path, y->path) : 0);
        char *path = strdup(k <= 0 ? x->path : y->path);
        DecayedSum directory = {0};

        if (!path)
            return -ENOMEM;
        /* A path may have been a file and a directory. It is a directory if a session that still
         * counts opened it as one. */
        if (k <= 0)
            directory = advance(a, x->as_directory);
        if (k >= 0)
            directory = decayed_sum_add(directory, advance(b, y->as_directory));
        m->files[m->n_files] = (ModelFile){
                .path = path,
                .directory = !decayed_sum_is_zero(directory),
                .as_directory = directory,
        };
        if (k <= 0)
            a->where[i++] = (uint32_t)m->n_files;
        if (k >= 0)
            b->where[j++] = (uint32_t)m->n_files;
        m->n_files++;
    }
    return 0;
}

void model_copy_directories(Model *sum, const Model *m)
{
    /* Both tables are sorted by path. */
    for (size_t i = 0, j = 0; i < sum->n_files && j < m->n_files; j++)
        if (strcmp(sum->files[i].path, m->files[j].path) == 0)
            sum->files[i++].as_directory = m->files[j].as_directory;
}

static int order_u32(uint32_t x, uint32_t y)
{
    return x < y ? -1 : x > y;
}

/* Adds the sums of an application or a use of one side. */
static void add_application(ModelApplication *sum, const Side *side, const ModelApplication *a)
{
    sum->active = decayed_sum_add(sum->active, advance(side, a->active));
    sum->launched = decayed_sum_add(sum->launched, advance(side, a->launched));
    sum->machines = decayed_sum_add(sum->machines, advance(side, a->machines));
}

/* Adds up what both uses know of touched pages. Each use may be NULL. Returns 0 or -ENOMEM. */
static int merge_touched(const Side *a, const ModelUse *u, const Side *b, const ModelUse *v,
                         ModelResidency **ret)
{
    static const ModelResidency none = {0};
    const ModelResidency *x = u && u->touched ? u->touched : &none;
    const ModelResidency *y = v && v->touched ? v->touched : &none;
    ModelResidency *sum;
    int r;

    if (decayed_sum_is_zero(advance(a, x->sessions)) &&
        decayed_sum_is_zero(advance(b, y->sessions)))
        return 0;
    sum = calloc(1, sizeof(*sum));
    if (!sum)
        return -ENOMEM;
    sum->sessions = decayed_sum_add(advance(a, x->sessions), advance(b, y->sessions));
    r = weighted_ranges_sum(&x->ranges, a->later, &y->ranges, b->later, &sum->ranges);
    if (r < 0) {
        free(sum);
        return r;
    }
    *ret = sum;
    return 0;
}

static void add_use(ModelUse *sum, const Side *side, const ModelUse *u)
{
    sum->used = decayed_sum_add(sum->used, advance(side, u->used));
    sum->launched = decayed_sum_add(sum->launched, advance(side, u->launched));
    sum->delay = decayed_sum_add(sum->delay, advance(side, u->delay));
    sum->machines = decayed_sum_add(sum->machines, advance(side, u->machines));
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
        ModelApplication sum = {.file = k <= 0 ? fx : fy};

        if (k <= 0) {
            add_application(&sum, a, &x->applications[i]);
            x_where[i++] = (uint32_t)s->n_applications;
        }
        if (k >= 0) {
            add_application(&sum, b, &y->applications[j]);
            y_where[j++] = (uint32_t)s->n_applications;
        }
        s->applications[s->n_applications++] = sum;
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
            u = (ModelUse){.application = x_where[x->uses[i].application],
                           .file = map_file(a, x->uses[i].file)};
        if (j_left)
            v = (ModelUse){.application = y_where[y->uses[j].application],
                           .file = map_file(b, y->uses[j].file)};
        k = pick(i_left, j_left,
                 u.application != v.application ? order_u32(u.application, v.application)
                                                : order_u32(u.file, v.file));
        w = k < 0 ? u : v;
        if (k <= 0)
            add_use(&w, a, &x->uses[i]);
        if (k >= 0)
            add_use(&w, b, &y->uses[j]);
        if (!decayed_sum_is_zero(w.used)) {
            CHECK(merge_touched(a, k <= 0 ? &x->uses[i] : NULL, b, k >= 0 ? &y->uses[j] : NULL,
                                &w.touched));
            s->uses[s->n_uses++] = w;
        }
        i += k <= 0;
        j += k >= 0;
    }
    return 0;
}

static int merge_residency(const Side *a, const ModelResidency *x, const Side *b,
                           const ModelResidency *y, ModelResidency *ret)
{
    for (Residency i = 0; i < _RESIDENCY_MAX; i++) {
        ret[i].sessions = decayed_sum_add(advance(a, x[i].sessions), advance(b, y[i].sessions));
        CHECK(weighted_ranges_sum(&x[i].ranges, a->later, &y[i].ranges, b->later, &ret[i].ranges));
    }
    return 0;
}

static int merge_stage_files(const Side *a, const ModelStage *x, const Side *b, const ModelStage *y,
                             ModelStage *s)
{
    static const ModelResidency none[_RESIDENCY_MAX] = {0};
    size_t i = 0, j = 0;

    if (grow_array(&s->files, &s->allocated_files, x->n_files + y->n_files,
                   sizeof(ModelStageFile)) < 0)
        return -ENOMEM;
    while (i < x->n_files || j < y->n_files) {
        const ModelStageFile *u = i < x->n_files ? &x->files[i] : NULL;
        const ModelStageFile *v = j < y->n_files ? &y->files[j] : NULL;
        int k = pick(u, v, u && v ? order_u32(map_file(a, u->file), map_file(b, v->file)) : 0);
        ModelStageFile o = {0};

        if (k <= 0) {
            o.file = map_file(a, u->file);
            o.used = advance(a, u->used);
            o.looked_up = advance(a, u->looked_up);
            o.first_use = advance(a, u->first_use);
            o.machines = advance(a, u->machines);
        }
        if (k >= 0) {
            o.file = map_file(b, v->file);
            o.used = decayed_sum_add(o.used, advance(b, v->used));
            o.looked_up = decayed_sum_add(o.looked_up, advance(b, v->looked_up));
            o.first_use = decayed_sum_add(o.first_use, advance(b, v->first_use));
            o.machines = decayed_sum_add(o.machines, advance(b, v->machines));
        }
        i += k <= 0;
        j += k >= 0;
        if (decayed_sum_is_zero(o.used))
            continue;
        s->files[s->n_files] = o;
        s->n_files++;
        CHECK(merge_residency(a, k <= 0 ? u->residency : none, b, k >= 0 ? v->residency : none,
                              s->files[s->n_files - 1].residency));
    }
    return 0;
}

static int merge_metadata(const Side *a, const ModelStage *x, const Side *b, const ModelStage *y,
                          ModelStage *s)
{
    static const WeightedRanges none = {0};
    size_t i = 0, j = 0;

    if (grow_array(&s->metadata, &s->allocated_metadata, x->n_metadata + y->n_metadata,
                   sizeof(ModelMetadata)) < 0)
        return -ENOMEM;
    while (i < x->n_metadata || j < y->n_metadata) {
        const ModelMetadata *u = i < x->n_metadata ? &x->metadata[i] : NULL;
        const ModelMetadata *v = j < y->n_metadata ? &y->metadata[j] : NULL;
        int k = pick(u, v, u && v ? model_compare_metadata(u, v) : 0);
        ModelMetadata *o = &s->metadata[s->n_metadata];
        const char *application;

        *o = (ModelMetadata){.assumed = k <= 0 ? u->assumed : v->assumed};
        if (k <= 0)
            o->observed = advance(a, u->observed);
        if (k >= 0)
            o->observed = decayed_sum_add(o->observed, advance(b, v->observed));
        i += k <= 0;
        j += k >= 0;
        if (decayed_sum_is_zero(o->observed))
            continue;
        application = k <= 0 ? u->application : v->application;
        s->n_metadata++;
        o->uuid = strdup(k <= 0 ? u->uuid : v->uuid);
        o->application = application ? strdup(application) : NULL;
        if (!o->uuid || (application && !o->application))
            return -ENOMEM;
        CHECK(weighted_ranges_sum(k <= 0 ? &u->ranges : &none, a->later,
                                  k >= 0 ? &v->ranges : &none, b->later, &o->ranges));
    }
    return 0;
}

/* Returns true if the stage has the application with that path. Files are sorted by path, and
 * applications by file; the unknown application comes last. */
static bool has_application(const Model *m, const ModelStage *s, const char *path)
{
    size_t lo = 0, hi = s->n_applications;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        uint32_t file = s->applications[mid].file;
        int c = file == MODEL_NONE ? 1 : strcmp(m->files[file].path, path);

        if (c == 0)
            return true;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return false;
}

void model_drop_expired_applications(const Model *m, ModelStage *s, uint32_t *scratch)
{
    size_t n = 0, n_uses = 0;

    for (size_t i = 0; i < s->n_applications; i++) {
        bool expired = decayed_sum_is_zero(s->applications[i].active);

        scratch[i] = expired ? MODEL_NONE : (uint32_t)n;
        if (!expired)
            s->applications[n++] = s->applications[i];
    }
    s->n_applications = n;
    for (size_t i = 0; i < s->n_uses; i++) {
        ModelUse u = s->uses[i];

        u.application = scratch[u.application];
        if (u.application != MODEL_NONE)
            s->uses[n_uses++] = u;
        else
            model_use_done(&u);
    }
    s->n_uses = n_uses;
    n = 0;
    for (size_t i = 0; i < s->n_metadata; i++)
        if (!s->metadata[i].application || has_application(m, s, s->metadata[i].application))
            s->metadata[n++] = s->metadata[i];
        else
            model_metadata_done(&s->metadata[i]);
    s->n_metadata = n;
}

static ModelTiming add_timing(ModelTiming sum, const Side *side, const ModelTiming *t)
{
    return (ModelTiming){
            .sessions = decayed_sum_add(sum.sessions, advance(side, t->sessions)),
            .ready = decayed_sum_add(sum.ready, advance(side, t->ready)),
            .stalled = decayed_sum_add(sum.stalled, advance(side, t->stalled)),
    };
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
        s.late = advance(a, x->late);
        s.autologins = advance(a, x->autologins);
        s.machines = advance(a, x->machines);
        s.timing = add_timing(s.timing, a, &x->timing);
    }
    if (y) {
        s.sessions = decayed_sum_add(s.sessions, advance(b, y->sessions));
        s.duration = decayed_sum_add(s.duration, advance(b, y->duration));
        s.late = decayed_sum_add(s.late, advance(b, y->late));
        s.autologins = decayed_sum_add(s.autologins, advance(b, y->autologins));
        s.machines = decayed_sum_add(s.machines, advance(b, y->machines));
        s.timing = add_timing(s.timing, b, &y->timing);
    }
    if (decayed_sum_is_zero(s.sessions))
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
    if (r >= 0) {
        model_drop_expired_applications(m, &s, scratch);
        r = model_limit_metadata(&s);
    }
    if (r < 0) {
        model_stage_done(&s);
        return r;
    }
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
        const ModelStage *x = i < a->m->n_stages ? &a->m->stages[i] : NULL;
        const ModelStage *y = j < b->m->n_stages ? &b->m->stages[j] : NULL;
        int k = pick(x, y, x && y ? order_stages(x, y) : 0);
        int r = merge_stage(a, k <= 0 ? x : NULL, b, k >= 0 ? y : NULL, m);

        if (r < 0)
            return r;
        i += k <= 0;
        j += k >= 0;
    }
    return 0;
}

static int order_u64(uint64_t x, uint64_t y)
{
    return x < y ? -1 : x > y;
}

static int order_identity(const ModelLearned *x, const ModelLearned *y)
{
    return x->start_realtime != y->start_realtime ? order_u64(x->start_realtime, y->start_realtime)
                                                  : order_u64(x->id, y->id);
}

int model_compare_learned(const void *a, const void *b)
{
    const ModelLearned *x = a, *y = b;

    return x->at != y->at ? order_u64(x->at, y->at) : order_identity(x, y);
}

/* Puts rows of the same trace next to one another, the later `at` first. */
static int compare_identity(const void *a, const void *b)
{
    const ModelLearned *x = a, *y = b;
    int c = order_identity(x, y);

    return c != 0 ? c : order_u64(y->at, x->at);
}

/* Merges the learned traces and keeps the newest. A trace that both have learned gets the later
 * time. */
static int merge_learned(const Model *a, const Model *b, Model *m)
{
    size_t all = a->n_learned + b->n_learned, n = 0;

    CHECK(grow_array(&m->learned, &m->allocated_learned, all, sizeof(ModelLearned)));
    if (all == 0)
        return 0;
    for (size_t i = 0; i < all; i++)
        m->learned[i] = i < a->n_learned ? a->learned[i] : b->learned[i - a->n_learned];
    qsort(m->learned, all, sizeof(ModelLearned), compare_identity);
    for (size_t i = 0; i < all; i++)
        if (n == 0 || order_identity(&m->learned[n - 1], &m->learned[i]) != 0)
            m->learned[n++] = m->learned[i];
    qsort(m->learned, n, sizeof(ModelLearned), model_compare_learned);
    m->n_learned = MIN(n, (size_t)MODEL_LEARNED_MAX);
    memmove(m->learned, m->learned + n - m->n_learned, m->n_learned * sizeof(ModelLearned));
    return 0;
}

int model_drop_unused_files(Model *m)
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

/* Sets m->chains. If only one model has chains, they are merged with empty chains, because the
 * result of chains_merge() is the copy that `m` owns. */
static int merge_chains(const Model *a, const Model *b, Model *m)
{
    const Chains *some = a->chains ? a->chains : b->chains;
    _cleanup_chains_ Chains *nothing = NULL;

    if (!some)
        return 0;
    if (!a->chains || !b->chains)
        CHECK(chains_new(some->halflife_usec, some->window_usec, &nothing));
    return chains_merge(a->chains ? a->chains : nothing, b->chains ? b->chains : nothing,
                        &m->chains);
}

static bool has_few_ranges(const ModelStageFile *f)
{
    for (Residency i = 0; i < _RESIDENCY_MAX; i++)
        if (f->residency[i].ranges.n > MODEL_RANGES_MAX)
            return false;
    return true;
}

static bool has_few_filesystems(const ModelStage *s)
{
    size_t n_assumed = 0, n_needed = 0;

    for (size_t i = 0; i < s->n_metadata; i++) {
        n_assumed += s->metadata[i].assumed;
        n_needed += s->metadata[i].application != NULL;
    }
    return n_assumed <= TRACE_VOLUMES_MAX && n_needed <= MODEL_NEEDED_MAX &&
           s->n_metadata - n_assumed - n_needed <= TRACE_VOLUMES_MAX;
}

static bool within_limits(const Model *m)
{
    bool ok = m->n_files <= MODEL_FILES_MAX && m->n_stages <= MODEL_STAGES_MAX;

    for (size_t i = 0; i < m->n_stages && ok; i++) {
        const ModelStage *s = &m->stages[i];

        ok = s->n_uses <= MODEL_USES_MAX && has_few_filesystems(s);
        for (size_t k = 0; k < s->n_uses && ok; k++)
            ok = !s->uses[k].touched || s->uses[k].touched->ranges.n <= MODEL_RANGES_MAX;
        for (size_t k = 0; k < s->n_files && ok; k++)
            ok = has_few_ranges(&s->files[k]);
        for (size_t k = 0; k < s->n_metadata && ok; k++)
            ok = s->metadata[k].ranges.n <= MODEL_RANGES_MAX;
    }
    return ok;
}

int model_merge(const Model *a, const Model *b, Model **ret)
{
    _cleanup_model_ Model *m = model_new(a->halflife_usec);
    _cleanup_free_ uint32_t *a_where = NULL, *b_where = NULL;
    DecayClock clock;
    Side sa, sb;
    int r;

    if (!m)
        return -ENOMEM;
    if (a->halflife_usec != b->halflife_usec)
        return -EINVAL;
    a_where = calloc(a->n_files + 1, sizeof(uint32_t));
    b_where = calloc(b->n_files + 1, sizeof(uint32_t));
    if (!a_where || !b_where)
        return -ENOMEM;
    clock = decay_clock_later((DecayClock){a->clock, a->clock_offset_usec},
                              (DecayClock){b->clock, b->clock_offset_usec});
    m->clock = clock.latest;
    m->clock_offset_usec = clock.offset_usec;
    m->generation = MAX(a->generation, b->generation);
    sa = (Side){a, m->generation - a->generation, a_where};
    sb = (Side){b, m->generation - b->generation, b_where};

    r = merge_files(&sa, &sb, m);
    if (r >= 0)
        r = merge_stages(&sa, &sb, m);
    if (r >= 0)
        r = merge_learned(a, b, m);
    if (r >= 0)
        r = model_drop_unused_files(m);
    if (r >= 0)
        r = merge_chains(a, b, m);
    if (r < 0)
        return r;
    if (!within_limits(m))
        return -E2BIG;
    *ret = TAKE_PTR(m);
    return 0;
}

bool model_is_full(const Model *m)
{
    for (size_t i = 0; i < m->n_stages; i++)
        if (decayed_sum_is_full(m->stages[i].duration))
            return true;
    return m->chains && chains_is_full(m->chains);
}
