/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Drops what is used too rarely to be useful, or what too few machines of a fleet have seen.
 * model.h says why merging does not do this. */

#include "model/model-internal.h"

#include <string.h>

/* What a row of a stage needs in order to stay. */
typedef struct Minimum {
    double probability; /* share of the stage's sessions */
    uint64_t machines;
} Minimum;

uint64_t model_count_machines(DecayedSum machines)
{
    return decayed_sum_saturating_add(machines.current, machines.previous);
}

static bool is_rare(const Minimum *min, const ModelStage *s, DecayedSum used, DecayedSum machines)
{
    return decayed_sum_ratio(used, s->sessions) < min->probability ||
           model_count_machines(machines) < min->machines;
}

/* Drops the residency that no plan uses, because a better one is known. */
static void keep_best_residency(ModelStageFile *f)
{
    const ModelResidency *best = model_best_residency(f);

    for (Residency i = 0; i < _RESIDENCY_MAX; i++)
        if (&f->residency[i] != best) {
            weighted_ranges_done(&f->residency[i].ranges);
            f->residency[i] = (ModelResidency){0};
        }
}

/* Keeps in a stage only files and applications that are not rare, and the uses between them. `keep`
 * has room for each file, `scratch` for each application. */
static void prune_stage(const Model *m, ModelStage *s, const Minimum *min, bool *keep,
                        uint32_t *scratch)
{
    size_t n = 0;

    for (size_t k = 0; k < s->n_files; k++) {
        ModelStageFile *f = &s->files[k];

        if (is_rare(min, s, f->used, f->machines)) {
            model_stage_file_done(f);
            continue;
        }
        keep_best_residency(f);
        keep[f->file] = true;
        s->files[n++] = *f;
    }
    s->n_files = n;
    n = 0;
    for (size_t k = 0; k < s->n_uses; k++)
        if (keep[s->uses[k].file] && model_count_machines(s->uses[k].machines) >= min->machines)
            s->uses[n++] = s->uses[k];
        else
            model_use_done(&s->uses[k]);
    s->n_uses = n;
    for (size_t k = 0; k < s->n_applications; k++)
        if (is_rare(min, s, s->applications[k].active, s->applications[k].machines))
            s->applications[k].active = (DecayedSum){0, 0};
    model_drop_expired_applications(m, s, scratch);
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

static int prune_stages(Model *m, const Minimum *min)
{
    _cleanup_free_ uint32_t *scratch = NULL;
    _cleanup_free_ bool *keep = NULL;
    size_t n_applications = 0;

    for (size_t i = 0; i < m->n_stages; i++)
        n_applications = MAX(n_applications, m->stages[i].n_applications);
    keep = calloc(m->n_files + 1, sizeof(bool));
    scratch = calloc(n_applications + 1, sizeof(uint32_t));
    if (!keep || !scratch)
        return -ENOMEM;
    for (size_t i = 0; i < m->n_stages; i++) {
        memset(keep, 0, m->n_files * sizeof(bool));
        prune_stage(m, &m->stages[i], min, keep, scratch);
    }
    return 0;
}

int model_prune(Model **m, double min_probability)
{
    CHECK(prune_stages(*m, &(Minimum){.probability = min_probability}));
    CHECK(prune_chains(*m));
    return model_drop_unused_files(*m);
}

int model_drop_rare(Model **m, uint64_t min_machines)
{
    size_t n = 0;

    for (size_t i = 0; i < (*m)->n_stages; i++) {
        ModelStage *s = &(*m)->stages[i];

        model_drop_metadata(s);
        if (model_count_machines(s->machines) < min_machines)
            model_stage_done(s);
        else
            (*m)->stages[n++] = *s;
    }
    (*m)->n_stages = n;
    model_drop_machine_facts(*m);
    (*m)->n_learned = 0;
    (*m)->chains = chains_free((*m)->chains);
    CHECK(prune_stages(*m, &(Minimum){.machines = min_machines}));
    CHECK(model_drop_unused_files(*m));
    return model_drop_local_files(*m);
}
