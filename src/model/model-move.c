/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Applies new names and removals of files to a model. */

#include "model/model-internal.h"

#include <string.h>

typedef struct Moved {
    ModelFile file;
    double used; /* sessions, of all stages */
    uint32_t old;
    bool drop;
} Moved;

static int compare_moved(const void *a, const void *b)
{
    const Moved *x = a, *y = b;
    int c = strcmp(x->file.path, y->file.path);

    if (c != 0)
        return c;
    if (x->used != y->used)
        return x->used > y->used ? -1 : 1;
    return x->old < y->old ? -1 : 1;
}

static int compare_stage_files(const void *a, const void *b)
{
    uint32_t x = ((const ModelStageFile *)a)->file, y = ((const ModelStageFile *)b)->file;

    return x < y ? -1 : x > y;
}

typedef struct RankedApplication {
    ModelApplication application;
    uint32_t old;
} RankedApplication;

static int compare_applications(const void *a, const void *b)
{
    const RankedApplication *x = a, *y = b;

    /* MODEL_NONE (unknown) is the largest number and sorts last. */
    return x->application.file < y->application.file ? -1
                                                     : x->application.file > y->application.file;
}

static int move_applications(ModelStage *s, const uint32_t *where)
{
    _cleanup_free_ RankedApplication *ranked = calloc(s->n_applications + 1, sizeof(*ranked));
    _cleanup_free_ uint32_t *to = calloc(s->n_applications + 1, sizeof(*to));
    size_t n = 0, n_uses = 0;

    if (!ranked || !to)
        return -ENOMEM;
    for (size_t i = 0; i < s->n_applications; i++) {
        ModelApplication a = s->applications[i];

        to[i] = MODEL_NONE;
        if (a.file != MODEL_NONE) {
            a.file = where[a.file];
            if (a.file == MODEL_NONE)
                continue;
        }
        ranked[n++] = (RankedApplication){a, (uint32_t)i};
    }
    if (n > 0)
        qsort(ranked, n, sizeof(*ranked), compare_applications);
    for (size_t i = 0; i < n; i++) {
        s->applications[i] = ranked[i].application;
        to[ranked[i].old] = (uint32_t)i;
    }
    s->n_applications = n;
    for (size_t i = 0; i < s->n_uses; i++) {
        ModelUse u = s->uses[i];

        u.application = to[u.application];
        u.file = where[u.file];
        if (u.application != MODEL_NONE && u.file != MODEL_NONE)
            s->uses[n_uses++] = u;
        else
            model_use_done(&u);
    }
    s->n_uses = n_uses;
    if (n_uses > 0)
        qsort(s->uses, n_uses, sizeof(*s->uses), model_compare_uses);
    return 0;
}

static int move_stage(ModelStage *s, const uint32_t *where)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_files; i++) {
        ModelStageFile f = s->files[i];

        f.file = where[f.file];
        if (f.file == MODEL_NONE)
            model_stage_file_done(&f);
        else
            s->files[n++] = f;
    }
    s->n_files = n;
    if (n > 0)
        qsort(s->files, n, sizeof(*s->files), compare_stage_files);
    return move_applications(s, where);
}

static bool is_listed(const ModelMetadata *rows, size_t n, const ModelMetadata *d)
{
    for (size_t i = 0; i < n; i++)
        if (model_compare_metadata(&rows[i], d) == 0)
            return true;
    return false;
}

/* Gives the applications of the rows of metadata their new names; "" if they are removed. The files
 * still have their old names. Returns 0 or -ENOMEM. */
static int rename_metadata(const Model *m, ModelStage *s, char *const *to)
{
    for (size_t i = 0; i < s->n_metadata; i++) {
        ModelMetadata *d = &s->metadata[i];
        uint32_t file = d->application ? model_find_file(m, d->application) : MODEL_NONE;
        char *name = file != MODEL_NONE && to[file] ? strdup(to[file]) : NULL;

        if (file == MODEL_NONE || !to[file])
            continue;
        if (!name)
            return -ENOMEM;
        free(d->application);
        d->application = name;
    }
    return 0;
}

/* Removes the rows of applications that are removed, or that get the name of an earlier one. */
static void drop_moved_metadata(ModelStage *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_metadata; i++) {
        ModelMetadata d = s->metadata[i];

        if (d.application && (!d.application[0] || is_listed(s->metadata, n, &d)))
            model_metadata_done(&d);
        else
            s->metadata[n++] = d;
    }
    s->n_metadata = n;
    if (n > 0)
        qsort(s->metadata, n, sizeof(*s->metadata), model_compare_metadata);
}

int model_move_files(Model *m, char **to)
{
    _cleanup_free_ Moved *moved = calloc(m->n_files + 1, sizeof(*moved));
    _cleanup_free_ uint32_t *where = calloc(m->n_files + 1, sizeof(*where));
    size_t n = 0;
    int r = 0;

    if (!moved || !where)
        return -ENOMEM;
    for (size_t i = 0; i < m->n_stages; i++) {
        CHECK(rename_metadata(m, &m->stages[i], to));
        drop_moved_metadata(&m->stages[i]);
    }
    for (size_t i = 0; i < m->n_files; i++) {
        moved[i] = (Moved){
                .file = m->files[i],
                .old = (uint32_t)i,
                .drop = to[i] && !to[i][0],
        };
        if (to[i] && to[i][0]) {
            free(moved[i].file.path);
            moved[i].file.path = TAKE_PTR(to[i]);
        }
    }
    for (size_t i = 0; i < m->n_stages; i++)
        for (size_t k = 0; k < m->stages[i].n_files; k++)
            moved[m->stages[i].files[k].file].used += decayed_sum_value(m->stages[i].files[k].used);
    if (m->n_files > 0)
        qsort(moved, m->n_files, sizeof(*moved), compare_moved);
    for (size_t i = 0; i < m->n_files; i++) {
        bool taken = n > 0 && strcmp(m->files[n - 1].path, moved[i].file.path) == 0;

        if (moved[i].drop || taken) {
            where[moved[i].old] = MODEL_NONE;
            free(moved[i].file.path);
            continue;
        }
        where[moved[i].old] = (uint32_t)n;
        m->files[n++] = moved[i].file;
    }
    m->n_files = n;
    for (size_t i = 0; r >= 0 && i < m->n_stages; i++)
        r = move_stage(&m->stages[i], where);
    return r < 0 ? r : model_drop_unused_files(m);
}

static void stretch(WeightedRanges *s, const ModelResize *x)
{
    uint64_t old_end = ALIGN_UP(x->old_size, MODEL_ALIGN_BYTES);
    uint64_t new_end = ALIGN_UP(x->new_size, MODEL_ALIGN_BYTES);
    WeightedRange *last = s->n > 0 ? &s->ranges[s->n - 1] : NULL;

    if (last && weighted_range_end(last) >= old_end && weighted_range_end(last) < new_end)
        last->length = new_end - last->offset;
}

static int compare_resizes(const void *a, const void *b)
{
    const ModelResize *x = a, *y = b;

    return x->file < y->file ? -1 : x->file > y->file;
}

static const ModelResize *find_resize(const ModelResize *resizes, size_t n, uint32_t file)
{
    const ModelResize key = {.file = file};

    return bsearch(&key, resizes, n, sizeof(key), compare_resizes);
}

void model_stretch_files(Model *m, const ModelResize *resizes, size_t n)
{
    for (size_t i = 0; n > 0 && i < m->n_stages; i++) {
        for (size_t k = 0; k < m->stages[i].n_files; k++) {
            ModelStageFile *f = &m->stages[i].files[k];
            const ModelResize *x = find_resize(resizes, n, f->file);

            for (Residency j = 0; x && j < _RESIDENCY_MAX; j++)
                stretch(&f->residency[j].ranges, x);
        }
        for (size_t k = 0; k < m->stages[i].n_uses; k++) {
            ModelUse *u = &m->stages[i].uses[k];
            const ModelResize *x = u->touched ? find_resize(resizes, n, u->file) : NULL;

            if (x)
                stretch(&u->touched->ranges, x);
        }
    }
}
