/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Bounds the rows of metadata of a stage. Without this, the filesystems or the applications of a
 * few users could make the sum of all users fail. */

#include "model/model-internal.h"

typedef enum RowKind {
    ROW_OBSERVED,
    ROW_ASSUMED,
    ROW_NEEDED, /* by an application */
    _ROW_KIND_MAX,
} RowKind;

static const size_t rows_max[_ROW_KIND_MAX] = {
        [ROW_OBSERVED] = TRACE_VOLUMES_MAX,
        [ROW_ASSUMED] = TRACE_VOLUMES_MAX,
        [ROW_NEEDED] = MODEL_NEEDED_MAX,
};

static RowKind kind_of(const ModelMetadata *d)
{
    return d->application ? ROW_NEEDED : d->assumed ? ROW_ASSUMED : ROW_OBSERVED;
}

/* A row, and what decides whether it is kept. */
typedef struct RankedRow {
    size_t row;
    bool shipped; /* its application is in a directory of the distribution */
    double observed;
} RankedRow;

/* Rows are sorted by UUID. Therefore the order of equal rows does not depend on which of two models
 * had them. */
static int compare_ranked(const void *a, const void *b)
{
    const RankedRow *x = a, *y = b;

    if (x->shipped != y->shipped)
        return x->shipped ? -1 : 1;
    if (x->observed != y->observed)
        return x->observed > y->observed ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* Empties the rows of that kind beyond its limit. `ranked` has room for all rows. */
static void drop_rows(ModelStage *s, RowKind kind, RankedRow *ranked)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_metadata; i++) {
        const ModelMetadata *d = &s->metadata[i];

        if (d->uuid && kind_of(d) == kind)
            ranked[n++] = (RankedRow){i, d->application && model_path_is_portable(d->application),
                                      decayed_sum_ratio(d->observed, s->sessions)};
    }
    qsort(ranked, n, sizeof(*ranked), compare_ranked);
    for (size_t i = rows_max[kind]; i < n; i++) {
        model_metadata_done(&s->metadata[ranked[i].row]);
        s->metadata[ranked[i].row] = (ModelMetadata){0};
    }
}

int model_limit_metadata(ModelStage *s)
{
    size_t counts[_ROW_KIND_MAX] = {0}, kept = 0;
    _cleanup_free_ RankedRow *ranked = NULL;

    for (size_t i = 0; i < s->n_metadata; i++)
        counts[kind_of(&s->metadata[i])]++;
    for (RowKind k = 0; k < _ROW_KIND_MAX; k++) {
        if (counts[k] <= rows_max[k])
            continue;
        if (!ranked)
            ranked = calloc(s->n_metadata, sizeof(*ranked));
        if (!ranked)
            return -ENOMEM;
        drop_rows(s, k, ranked);
    }
    if (!ranked)
        return 0;
    for (size_t i = 0; i < s->n_metadata; i++)
        if (s->metadata[i].uuid)
            s->metadata[kept++] = s->metadata[i];
    s->n_metadata = kept;
    return 0;
}
