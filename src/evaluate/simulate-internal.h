/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by the parts of the simulator: the cache and the selection (simulate-cache.c), the events
 * and the scores (simulate.c). */

#include "evaluate/predictor-internal.h"
#include "evaluate/simulate.h"

#define SIMULATE_NO_OBJECT UINT32_MAX

typedef struct SimulatedObject {
    uint32_t newer, older; /* LRU list, while cached */
    bool cached;
    bool unused;       /* read for a prediction, and not used since */
    bool pending;      /* waits in the queue of the disk */
    double use;        /* of the SelectionCandidate for which it was queued */
    uint64_t selected; /* number of the last prediction that selected it */
    usec_t issued, arrives;
} SimulatedObject;

/* One use of an item. */
typedef struct SimulatedUse {
    size_t event;
    usec_t at;
    uint32_t session;
} SimulatedUse;

typedef struct Simulation {
    const SimulateInput *in;
    const SimulateParameters *p;
    Predictor *predictor;
    SimulateReport *report;
    SimulatedObject *objects;
    uint32_t newest, oldest; /* of the LRU list */
    uint64_t cached_size;    /* objects or bytes */
    RunningSet running;
    SimulatedUse *uses; /* the uses of each item, in order */
    size_t *uses_first; /* by item: index into uses; n_items + 1 of them */
    size_t *uses_next;  /* by item: the first use that is not in the past */
    Guesses guesses, kept, scored;
    uint32_t *offered, *selected;     /* room for all objects */
    SelectionCandidate *candidates;   /* of `offered` */
    double *worth;                    /* by object, or NULL */
    ObjectScores scores, kept_scores; /* scores: of uses within the horizon of the selection;
                                         kept_scores: of uses before the session ends */
    uint64_t n_predictions;
    uint64_t read_bytes, wasted_bytes;
    SelectionReads reads; /* of this session */
    uint32_t *queue;      /* of the disk: objects to read ahead; room for all of them */
    size_t n_queue, queue_at;
    usec_t now, session_start, last_point;
    usec_t disk_free;  /* when the disk has finished the reads that have begun */
    usec_t stalled_to; /* when the latest use had all its objects */
    uint32_t session;
    bool in_session, testing;
    /* Of this session, by bin: the number of guesses, and of used ones less their probabilities. */
    double bin_n[SIMULATE_BINS], bin_excess[SIMULATE_BINS];
} Simulation;

/* Returns whether the selection depends on the probability of use before the session ends. */
static inline bool simulate_asks_for_use(const Simulation *s)
{
    return s->p->selection.maximum_waste < 1 || s->p->selection.minimum_use > 0;
}

/* Begins the queued reads whose turn comes up to `until`. */
void simulate_disk_advance(Simulation *s, usec_t until);
/* Reads an object that a use needs at `at`. Returns the time at which the object arrives. */
usec_t simulate_disk_demand(Simulation *s, uint32_t o, usec_t at);
/* Makes the object the newest in the cache. An object that is not cached is added if it fits into
 * the cache; other objects are evicted for it. */
void simulate_cache_use(Simulation *s, uint32_t o);
/* Empties the cache when a session ends. Objects that were read and not used count as wasted. */
void simulate_cache_clear(Simulation *s);
/* Selects from s->scores within the budget, and reads the objects that are not cached. Returns 0 or
 * -ENOMEM. */
int simulate_select(Simulation *s);
