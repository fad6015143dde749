/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "chains/decayed-sum.h"
#include "evaluate/predictor-internal.h"
#include "predict/mixture.h"

#include <string.h>

static const PredictorOps *const table[] = {
        &predictor_ops_none,           &predictor_ops_naive,       &predictor_ops_session_share,
        &predictor_ops_last_successor, &predictor_ops_best_j_of_k, &predictor_ops_2_gram,
        &predictor_ops_1_5_gram,       &predictor_ops_association, &predictor_ops_hybrid,
        &predictor_ops_access_trees,   &predictor_ops_graph,       &predictor_ops_pcm,
        &predictor_ops_epcm,           &predictor_ops_preload,     &predictor_ops_mixture,
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
            .popularity_j = 2,
            .popularity_k = 4,
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

/* Returns true if x is within 0..1, and false for NaN. */
static bool is_share(double x)
{
    return x >= 0 && x <= 1;
}

static bool is_within(uint64_t x, uint64_t min, uint64_t max)
{
    return x >= min && x <= max;
}

static bool parameters_valid(const PredictorParameters *p)
{
    const double shares[] = {p->association_support, p->association_confidence,
                             p->graph_minimum_chance, p->partition_threshold};

    for (size_t i = 0; i < ELEMENTSOF(shares); i++)
        if (!is_share(shares[i]))
            return false;
    return is_within(p->ngram_predecessors, 1, 8) && is_within(p->ngram_successors, 1, 16) &&
           is_within(p->popularity_k, 1, 16) && is_within(p->popularity_j, 1, p->popularity_k) &&
           is_within(p->association_window, 2, 8) && is_within(p->graph_lookahead, 1, 64) &&
           is_within(p->partition_nodes, 2, 4096) &&
           is_within(p->partition_order, 2, p->partition_nodes) &&
           p->partition_jump < p->partition_order &&
           is_within(p->halflife_usec, 1, USEC_INFINITY / DECAYED_SUM_SPAN) &&
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
