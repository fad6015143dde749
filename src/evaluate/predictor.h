/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One interface for all predictors that the evaluation compares (docs/predictors.md): it observes
 * events and predicts items with probabilities. Pure: the time is an argument, and randomness comes
 * from the seed.
 *
 * Items are small numbers that the caller gives to applications or files. An event is the start or
 * exit of an application, or an access to a file. Predictors of sequences (n-grams, best j of k,
 * association rules, graph, contexts) treat a start as an access, as the probability graph does
 * (Griffioen and Appleton 1994, section 5), and ignore exits. The other predictors use starts and
 * exits. The Markov predictors (preload, mixture) ignore accesses.
 *
 * Input comes from traces and may be wrong. A time that runs back counts as the latest time seen.
 * An exit without a start is ignored. An item that was started twice runs until it has exited
 * twice. */

#include "base/macros.h"
#include "base/time-util.h"
#include "base/uid.h"
#include "predict/guesses.h"

#define PREDICTOR_ITEMS_MAX (1U << 20)
#define PREDICTOR_NONE      UINT32_MAX /* no item */

typedef enum PredictorEventKind {
    PREDICTOR_START,  /* an application starts */
    PREDICTOR_EXIT,   /* an application exits */
    PREDICTOR_ACCESS, /* a file is used */
    _PREDICTOR_EVENT_KIND_MAX,
    _PREDICTOR_EVENT_KIND_INVALID = -EINVAL,
} PredictorEventKind;

typedef struct PredictorEvent {
    usec_t at;     /* any one clock that runs while the machine is on */
    uint32_t user; /* UID_INVALID: unknown */
    uint32_t item; /* below PREDICTOR_ITEMS_MAX */
    PredictorEventKind kind;
} PredictorEvent;

typedef enum MixtureCombination {
    MIXTURE_CALIBRATED, /* predict/mixture.h */
    MIXTURE_PRODUCT,    /* the thesis's 1 - product over chains, which is too high */
    _MIXTURE_COMBINATION_MAX,
    _MIXTURE_COMBINATION_INVALID = -EINVAL,
} MixtureCombination;

/* The parameters of all predictors. Initialise them with predictor_parameters_init(). Each
 * predictor reads its own parameters and ignores the others. */
typedef struct PredictorParameters {
    /* Sequence predictors */
    unsigned ngram_predecessors;   /* p of p-s-gram+: 1..8 */
    unsigned ngram_successors;     /* s of p-s-gram+: 1..16 */
    unsigned popularity_j;         /* best j of k: 1..k */
    unsigned popularity_k;         /* successors kept of each item: 1..16 */
    unsigned association_window;   /* accesses in one window: 2..8 */
    double association_support;    /* 0..1 */
    double association_confidence; /* 0..1 */
    unsigned association_guesses;  /* maximum number of guesses */
    unsigned graph_lookahead;      /* opens that count as following soon: 1..64 */
    double graph_minimum_chance;   /* 0..1 */
    bool graph_letter;             /* use the paper's chance: arcs over all arcs (graph.c) */
    unsigned partition_nodes;      /* PCM, EPCM: 2..4096 nodes a partition */
    unsigned partition_order;      /* longest pattern, 2..partition_nodes */
    double partition_threshold;    /* EPCM: a guess must be likelier than this */
    unsigned partition_jump; /* EPCM: number of last symbols that select another partition; 0: no
                                jumping */

    /* Markov predictors */
    usec_t halflife_usec; /* half-life of everything learned: one week */
    usec_t chain_window;  /* two starts within this time are a co-occurrence: 600 s */
    MixtureCombination combination;
    bool mixture_users; /* distinguish users */
} PredictorParameters;

typedef struct Predictor Predictor;

/* Sets *ret to the defaults of the predictor with that name. Returns 0, or -ENOENT if there is
 * none. */
int predictor_parameters_init(PredictorParameters *ret, const char *name);

/* Return name and source of the i-th predictor in the order of docs/predictors.md; NULL beyond the
 * last. */
const char *predictor_name(size_t i);
const char *predictor_source(size_t i);

/* Makes a predictor without any knowledge. `parameters` may be NULL (the defaults). The same
 * events, seed and parameters give the same guesses, bit for bit. Returns 0, -ENOENT (no such
 * name), -EINVAL (a parameter out of range), -ENOMEM. */
int predictor_new(const char *name, const PredictorParameters *parameters, uint64_t seed,
                  Predictor **ret);
Predictor *predictor_free(Predictor *p);
DEFINE_CLEANUP(Predictor *, predictor_free);
#define _cleanup_predictor_ _cleanup_(predictor_freep)

/* Sets the wall clock: it shows `realtime` when the events' clock shows `now`. Learned sums decay
 * by the wall clock, also while the machine is off. Call this function again when either clock may
 * have jumped. Without a call the events' clock serves as the wall clock. */
void predictor_set_wall_clock(Predictor *p, usec_t now, usec_t realtime);

/* Begins a session of that user: no application runs, and no item was accessed yet. Returns 0 or
 * -ENOMEM. */
int predictor_begin(Predictor *p, usec_t now, uint32_t user);
/* Ends the session. The time of applications that still run ends here, but only `preload` counts
 * them as exited. Begin and end are optional; a begin ends the previous session. Returns 0 or
 * -ENOMEM. */
int predictor_end(Predictor *p, usec_t now);

/* Learns from one event. Returns 0, -EINVAL (kind or item out of range; nothing is learned),
 * -ENOMEM (the predictor stays usable, the event may be lost). */
int predictor_observe(Predictor *p, const PredictorEvent *event);

/* Predicts which items are used within `horizon` after `now` (USEC_INFINITY: before the session
 * ends). Replaces `guesses`. Only the Markov predictors and the oracle use `now` and the horizon.
 * Returns 0 or -ENOMEM. */
int predictor_predict(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses);

/* Predicts the order in which to read for uses within `horizon`. A predictor whose order is not
 * that of the probabilities returns scores within 0..1. Returns 0 or -ENOMEM. */
int predictor_rank(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses);

/* Returns the bytes of memory that the learned data takes. */
size_t predictor_size(const Predictor *p);
