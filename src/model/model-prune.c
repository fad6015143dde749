/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Drops what is used too rarely to be useful. model.h says why merging does not do this. */

#include "model/model-internal.h"

#include <string.h>

/* Keeps in a stage only what at least this share of its sessions used. `keep` has room for each
 * file. */
static void prune_stage(ModelStage *s, double min_probability, bool *keep, uint32_t *scratch)
{
    size_t n = 0;

    for (size_t k = 0; k < s->n_files; k++) {
        ModelStageFile *f = &s->files[k];

        if (decayed_sum_ratio(f->used, s->sessions) < min_probability) {
            weighted_ranges_done(&f->resident);
            weighted_ranges_done(&f->assumed_resident);
            continue;
        }
        if (!decayed_sum_is_zero(f->observed)) {
            f->assumed = (DecayedSum){0, 0};
            weighted_ranges_done(&f->assumed_resident);
        }
        keep[f->file] = true;
        s->files[n++] = *f;
    }
    s->n_files = n;
    n = 0;
    for (size_t k = 0; k < s->n_uses; k++)
        if (keep[s->uses[k].file])
            s->uses[n++] = s->uses[k];
    s->n_uses = n;
    for (size_t k = 0; k < s->n_applications; k++)
        if (decayed_sum_ratio(s->applications[k].active, s->sessions) < min_probability)
            s->applications[k].active = (DecayedSum){0, 0};
    model_drop_faded_applications(s, scratch);
}

static int prune_chains(Model *m)
{
    Chains *pruned;
    int r = m->chains ? chains_prune(m->chains, &pruned) : -EBUSY;

    /* While a session is under way, the ids of applications must not change. */
    if (r < 0)
        return r == -EBUSY ? 0 : r;
    chains_free(m->chains);
    m->chains = pruned;
    return 0;
}

int model_prune(Model **m, double min_probability)
{
    _cleanup_free_ uint32_t *scratch = NULL;
    _cleanup_free_ bool *keep = NULL;
    size_t n_applications = 0;
    int r;

    for (size_t i = 0; i < (*m)->n_stages; i++)
        n_applications = MAX(n_applications, (*m)->stages[i].n_applications);
    keep = calloc((*m)->n_files + 1, sizeof(bool));
    scratch = calloc(n_applications + 1, sizeof(uint32_t));
    if (!keep || !scratch)
        return -ENOMEM;
    for (size_t i = 0; i < (*m)->n_stages; i++) {
        memset(keep, 0, (*m)->n_files * sizeof(bool));
        prune_stage(&(*m)->stages[i], min_probability, keep, scratch);
    }
    r = prune_chains(*m);
    return r < 0 ? r : model_drop_unused_files(*m);
}
