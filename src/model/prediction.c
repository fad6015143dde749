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
    free(p->files);
    free(p->metadata);
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
