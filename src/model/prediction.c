/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "model/prediction.h"

Prediction *prediction_free(Prediction *p)
{
    if (!p)
        return NULL;
    for (size_t i = 0; i < p->n_files; i++) {
        free(p->files[i].path);
        free(p->files[i].maps);
    }
    for (size_t i = 0; i < p->n_metadata; i++)
        free(p->metadata[i].uuid);
    free(p->files);
    free(p->metadata);
    free(p);
    return NULL;
}
