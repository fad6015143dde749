/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/decayed-sum.h"
#include "evaluate/predictor-internal.h"
#include "predict/mixture.h"

#include <string.h>

static const PredictorOps *const table[] = {
        &predictor_ops_none,   &predictor_ops_naive,    &predictor_ops_last_successor,
        &predictor_ops_2_gram, &predictor_ops_1_5_gram, &predictor_ops_association,
        &predictor_ops_hybrid, &predictor_ops_graph,    &predictor_ops_pcm,
        &predictor_ops_epcm,   &predictor_ops_preload,  &predictor_ops_mixture,
};

static const PredictorOps *find(const char *name)
{
    for (size_t i = 0; i < ELEMENTSOF(table); i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}

const char *predictor_name(size_t i)
{
    return i < ELEMENTSOF(table) ? table[i]->name : NULL;
}

const char *predictor_source(size_t i)
{
    return i < ELEMENTSOF(table) ? table[i]->source : NULL;
}

int predictor_parameters_init(PredictorParameters *ret, const char *name)
{
    const PredictorOps *ops = find(name);

    if (!ops)
        return -ENOENT;
    *ret = (PredictorParameters){
            .ngram_predecessors = 1,
            .ngram_successors = 5,
            .association_window = 5,
            .association_support = 0.005,
            .association_confidence = 0.5,
            .association_guesses = 9,
            .graph_lookahead = 1,
            .graph_minimum_chance = 0.65,
            .partition_nodes = 64,
            .partition_order = 45,
            .partition_threshold = 0.5,
            .halflife_usec = 7 * 24 * USEC_PER_HOUR,
            .chain_window = MIXTURE_CHAIN_WINDOW,
            .combination = MIXTURE_CALIBRATED,
            .mixture_users = true,
    };
    if (ops->defaults)
        ops->defaults(ret);
    return 0;
}

/* Written so that NaN fails. */
static bool is_share(double x)
{
    return x >= 0 && x <= 1;
}

static bool parameters_valid(const PredictorParameters *p)
{
    return p->ngram_predecessors >= 1 && p->ngram_predecessors <= 8 && p->ngram_successors >= 1 &&
           p->ngram_successors <= 16 && p->association_window >= 2 && p->association_window <= 8 &&
           is_share(p->association_support) && is_share(p->association_confidence) &&
           is_share(p->graph_minimum_chance) && is_share(p->partition_threshold) &&
           p->graph_lookahead >= 1 && p->graph_lookahead <= 64 && p->partition_nodes >= 2 &&
           p->partition_nodes <= 4096 && p->partition_order >= 2 &&
           p->partition_order <= p->partition_nodes && p->partition_jump < p->partition_order &&
           p->halflife_usec > 0 && p->halflife_usec <= USEC_INFINITY / DECAYED_SUM_SPAN &&
           p->chain_window > 0 && p->combination >= 0 && p->combination < _MIXTURE_COMBINATION_MAX;
}

int predictor_new(const char *name, const PredictorParameters *parameters, uint64_t seed,
                  Predictor **ret)
{
    const PredictorOps *ops = find(name);
    PredictorParameters defaults;
    int r;

    if (!ops)
        return -ENOENT;
    if (!parameters) {
        r = predictor_parameters_init(&defaults, name);
        if (r < 0)
            return r;
        parameters = &defaults;
    }
    if (!parameters_valid(parameters))
        return -EINVAL;
    return predictor_create(ops, parameters, seed, ret);
}
