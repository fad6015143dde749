/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The interface that a predictor implements. predictor.c checks and orders input and output, so
 * that an implementation gets rising times, valid kinds and valid items. */

#include "evaluate/predictor.h"

typedef struct PredictorOps {
    const char *name;
    const char *source;
    void (*defaults)(PredictorParameters *p); /* may be NULL */
    size_t bytes;                             /* size of the predictor's own struct */
    /* Fills the zeroed struct; may be NULL. After a failure done() is called. */
    int (*init)(Predictor *p, const PredictorParameters *parameters, uint64_t seed);
    /* Frees what the struct owns, but not the struct; may be NULL. */
    void (*done)(Predictor *p);
    int (*begin)(Predictor *p, usec_t now, uint32_t user); /* may be NULL */
    int (*end)(Predictor *p, usec_t now);
    int (*observe)(Predictor *p, const PredictorEvent *event);
    int (*predict)(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses);
    /* NULL: the order of predict() */
    int (*rank)(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses);
    size_t (*size)(const Predictor *p);
} PredictorOps;

/* Initialises the members that every learning predictor has. Its functions must be named
 * PREFIX_done(), PREFIX_end() and so on. */
#define PREDICTOR_OPS(prefix, type)                                    \
    .bytes = sizeof(type), .done = prefix##_done, .end = prefix##_end, \
    .observe = prefix##_observe, .predict = prefix##_predict, .size = prefix##_size

/* First member of every predictor's own struct. */
struct Predictor {
    const PredictorOps *ops;
    usec_t now;         /* latest time seen */
    usec_t wall_offset; /* wall clock minus clock of the events; wraps */
    bool in_session;
};

/* Creates a predictor of that kind. Returns 0 or -ENOMEM. */
int predictor_create(const PredictorOps *ops, const PredictorParameters *p, uint64_t seed,
                     Predictor **ret);

/* The running items and their number of processes: item -> number of processes. */
typedef struct RunningSet {
    uint32_t *counts; /* by item */
    size_t allocated;
    uint32_t *items; /* the running items, in order of start */
    size_t n, items_allocated;
} RunningSet;

void running_set_done(RunningSet *s);
void running_set_clear(RunningSet *s);
/* Returns 1 if the item did not run before, 0 if it did, or -ENOMEM. */
int running_set_start(RunningSet *s, uint32_t item);
/* Returns 1 if the item stops running, 0 if it still runs or did not run. */
int running_set_exit(RunningSet *s, uint32_t item);
bool running_set_contains(const RunningSet *s, uint32_t item);

extern const PredictorOps predictor_ops_none;
extern const PredictorOps predictor_ops_naive;
extern const PredictorOps predictor_ops_session_share;
extern const PredictorOps predictor_ops_best_j_of_k;
extern const PredictorOps predictor_ops_access_trees;
extern const PredictorOps predictor_ops_last_successor;
extern const PredictorOps predictor_ops_2_gram;
extern const PredictorOps predictor_ops_1_5_gram;
extern const PredictorOps predictor_ops_association;
extern const PredictorOps predictor_ops_hybrid;
extern const PredictorOps predictor_ops_graph;
extern const PredictorOps predictor_ops_pcm;
extern const PredictorOps predictor_ops_epcm;
extern const PredictorOps predictor_ops_preload;
extern const PredictorOps predictor_ops_mixture;
