/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "model/prediction.h"

#include <string.h>

static void file_done(PredictedFile *f)
{
    free(f->path);
    free(f->maps);
}

Prediction *prediction_free(Prediction *p)
{
    if (!p)
        return NULL;
    for (size_t i = 0; i < p->n_files; i++)
        file_done(&p->files[i]);
    for (size_t i = 0; i < p->n_metadata; i++)
        free(p->metadata[i].uuid);
    for (size_t i = 0; i < p->n_assumed; i++)
        free(p->assumed[i].uuid);
    for (size_t i = 0; i < p->n_seen; i++)
        free(p->seen[i].uuid);
    free(p->files);
    free(p->metadata);
    free(p->assumed);
    free(p->seen);
    free(p);
    return NULL;
}

static int compare_likelier(const void *a, const void *b)
{
    const PredictedFile *x = a, *y = b;

    if (x->probability != y->probability)
        return x->probability > y->probability ? -1 : 1;
    return strcmp(x->path, y->path);
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(((const PredictedFile *)a)->path, ((const PredictedFile *)b)->path);
}

static int compare_metadata(const void *a, const void *b)
{
    const PredictedMetadata *x = a, *y = b;
    int c = strcmp(x->uuid, y->uuid);

    return c != 0 ? c : (x->range.offset > y->range.offset) - (x->range.offset < y->range.offset);
}

void prediction_keep_likeliest(Prediction *p, size_t n)
{
    if (n >= p->n_files)
        return;
    qsort(p->files, p->n_files, sizeof(PredictedFile), compare_likelier);
    while (p->n_files > n)
        file_done(&p->files[--p->n_files]);
    if (n > 1)
        qsort(p->files, n, sizeof(PredictedFile), compare_paths);
}

void prediction_remove_files(Prediction *p, bool (*remove)(const char *list, const char *path),
                             const char *list)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n_files; i++)
        if (remove(list, p->files[i].path))
            file_done(&p->files[i]);
        else
            p->files[n++] = p->files[i];
    p->n_files = n;
}

/* Returns the index of the first file whose path is not less than `path`. */
static size_t lower_bound(const Prediction *p, const char *path)
{
    size_t low = 0, high = p->n_files;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(p->files[middle].path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the index of the first map that ends after `offset`. */
static size_t first_map(const PredictedFile *f, uint64_t offset)
{
    size_t low = 0, high = f->n_maps;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (f->maps[middle].offset + f->maps[middle].length <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t overlap(Range range, const PredictedRange *m)
{
    uint64_t begin = MAX(range.offset, m->offset);
    uint64_t end = MIN(range.offset + range.length, m->offset + m->length);

    return begin < end ? end - begin : 0;
}

uint64_t prediction_likely_bytes(const Prediction *p, const char *path, Range range,
                                 double min_probability)
{
    uint64_t most = 0;

    for (size_t i = lower_bound(p, path); i < p->n_files && strcmp(p->files[i].path, path) == 0;
         i++) {
        const PredictedFile *f = &p->files[i];
        uint64_t bytes = 0;

        for (size_t k = first_map(f, range.offset);
             k < f->n_maps && f->maps[k].offset < range.offset + range.length; k++)
            if (f->maps[k].probability >= min_probability)
                bytes += overlap(range, &f->maps[k]);
        most = MAX(most, bytes);
    }
    return most;
}

static bool has_observed_metadata(const Prediction *p)
{
    for (size_t i = 0; i < p->n_metadata; i++)
        if (!p->metadata[i].assumed)
            return true;
    return false;
}

int prediction_append(Prediction *p, Prediction *more, usec_t after)
{
    bool known = has_observed_metadata(p), more_known = has_observed_metadata(more);
    bool partly_known = known != more_known && more->n_files > 0;
    Prediction *observed = known ? p : more;

    if (grow_array(&p->files, &p->allocated_files, p->n_files + more->n_files,
                   sizeof(PredictedFile)) < 0 ||
        grow_array(&p->metadata, &p->allocated_metadata,
                   p->n_metadata + more->n_metadata + observed->n_assumed,
                   sizeof(PredictedMetadata)) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < p->n_files && more_known && !known; i++)
        p->files[i].metadata_unknown = true;
    for (size_t i = 0; i < more->n_files; i++) {
        PredictedFile *f = &p->files[p->n_files++];

        *f = more->files[i];
        f->metadata_unknown = f->metadata_unknown || (known && !more_known);
        f->first_use += MIN(after, USEC_INFINITY - 1 - f->first_use);
    }
    for (size_t i = 0; i < more->n_metadata; i++)
        p->metadata[p->n_metadata++] = more->metadata[i];
    for (size_t i = 0; partly_known && i < observed->n_assumed; i++)
        p->metadata[p->n_metadata++] = observed->assumed[i];
    if (partly_known)
        observed->n_assumed = 0;
    /* Both stages together are ready when the second one is. A boot that the login ended has no
     * time of its own, but it lasted until `after`. */
    p->stalled = more->ready > 0 ? p->stalled + more->stalled : 0;
    p->ready = more->ready > 0 ? after + more->ready : 0;
    more->n_files = more->n_metadata = 0;
    if (p->n_files > 1)
        qsort(p->files, p->n_files, sizeof(PredictedFile), compare_paths);
    if (p->n_metadata > 1)
        qsort(p->metadata, p->n_metadata, sizeof(PredictedMetadata), compare_metadata);
    return 0;
}
