/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Trace-driven simulation of a predictor and a cache, as in Griffioen and Appleton (driver, cache
 * manager, disk, predictor), Rutt and Parthasarathy (section 4) and the thesis (6.1.1). Pure:
 * without clock and files; the same input gives the same report.
 *
 * Events name items (applications, files). Items consist of objects, which the cache holds: an
 * application consists of the files that it uses, and an item that is a file has a single object.
 * After every event, and every `cycle`, the predictor predicts. Objects are selected by falling
 * score, which is their probability times their worth (object_worth()), with the rules of the
 * session cycle (predict/selection.h). Their probability is that of equation 4.16. If the cache
 * counts files, as in thesis 4.3.2, the order is that of probability. Selected objects that are not
 * in the cache are read, one after the other. As in the product, a selection replaces the previous
 * one, and reads that have not begun are cancelled. A use reads the objects that it misses one
 * after the other. It waits for a read that has begun, but comes before all other reads. The cache
 * is LRU, and a selected object counts as just used. A cache without predictor is therefore the LRU
 * baseline. */

#include "evaluate/predictor.h"
#include "predict/object-scores.h"
#include "predict/selection.h"

typedef enum SimulateEventKind {
    SIMULATE_BEGIN, /* a session of `user` begins. The cache is cold. */
    SIMULATE_END,
    SIMULATE_START,
    SIMULATE_EXIT,
    SIMULATE_ACCESS,
    _SIMULATE_EVENT_KIND_MAX,
    _SIMULATE_EVENT_KIND_INVALID = -EINVAL,
} SimulateEventKind;

typedef struct SimulateEvent {
    usec_t at; /* a time that runs back counts as the latest time seen */
    uint32_t user;
    uint32_t item;
    SimulateEventKind kind;
    usec_t realtime; /* SIMULATE_BEGIN: the wall clock; 0: it advances as `at` does */
} SimulateEvent;

typedef struct SimulateInput {
    SimulateEvent *events;
    size_t n_events, allocated_events;
    uint64_t *object_bytes; /* by object */
    size_t n_objects, allocated_object_bytes;
    ItemParts *items; /* by item */
    size_t n_items, allocated_items;
    uint32_t *parts; /* objects of items, concatenated */
    size_t n_parts, allocated_parts;
} SimulateInput;

void simulate_input_done(SimulateInput *in);
#define _cleanup_simulate_input_ _cleanup_(simulate_input_done)

/* These functions build an input. Each returns 0, -ENOMEM or -E2BIG. The first two set *ret to the
 * number of the new object or item. */
int simulate_add_object(SimulateInput *in, uint64_t bytes, uint32_t *ret);
int simulate_add_item(SimulateInput *in, const uint32_t *objects, size_t n, uint32_t *ret);
int simulate_add_event(SimulateInput *in, const SimulateEvent *event);

typedef enum CacheUnit {
    CACHE_UNLIMITED,
    CACHE_FILES, /* the size is a number of objects */
    CACHE_BYTES,
    _CACHE_UNIT_MAX,
    _CACHE_UNIT_INVALID = -EINVAL,
} CacheUnit;

/* The bytes that a hard disk transfers in the ten milliseconds of a seek. */
#define SIMULATE_SEEK_BYTES 1000000U

typedef struct SimulateParameters {
    CacheUnit cache_unit;
    uint64_t cache_size;   /* size of the cache; also of the selection unless budget_bytes is set */
    uint64_t budget_bytes; /* of the selection; UINT64_MAX: cache_size. At most cache_size */
    double training;       /* share of the events that only train: 0.55 */
    bool learn_on;         /* continue to learn after training: true */
    usec_t cycle;          /* predict at least this often; 0: after events only */
    usec_t horizon;        /* of log loss and reliability: 20 s */
    usec_t select_horizon; /* horizon of the ranking; USEC_INFINITY: before the session ends */
    double minimum_probability;    /* objects below it are not selected: 0 */
    SelectionParameters selection; /* everything that fits into the budget: {0, 1} */
    uint64_t seek_bytes; /* argument of object_worth(): SIMULATE_SEEK_BYTES; 0: order by probability
                            alone (thesis 4.3.2) */
    usec_t grace;        /* the beginning of a session, its login, which is not scored */
    usec_t io_fixed_usec;                   /* cost of reading one object */
    uint64_t io_bytes_per_sec;              /* 0: transfer costs nothing */
    uint64_t (*clock_nsec)(void *userdata); /* for the time per event; NULL: not measured */
    void *clock_userdata;
    /* Called after each prediction with the selected objects in the order of their scores; or NULL.
     */
    void (*selected)(const uint32_t *objects, size_t n, void *userdata);
    void *selected_userdata;
    void (*progress)(size_t n_done, size_t n_events,
                     void *userdata); /* before each event; or NULL */
    void *progress_userdata;
} SimulateParameters;

/* Sets the defaults stated above, with an unlimited cache. */
void simulate_parameters_init(SimulateParameters *p);

/* Selects as the session cycle does, with this bound on the expected share of wasted bytes; 1:
 * none. */
void simulate_bound_waste(SimulateParameters *p, double maximum_waste);

#define SIMULATE_BINS 10

typedef struct SimulateBin {
    uint64_t n, used; /* guesses in this tenth, and those of them whose item was used */
    double sum;       /* sum of their probabilities */
    /* Sums over the sessions of e e, e n and n n. n is the number of guesses of a session in this
     * tenth, and e is the number of used ones less the sum of their probabilities. The guesses of a
     * session depend on one another, so these sums show how far chance explains a difference. */
    double ee, en, nn;
} SimulateBin;

typedef struct SimulateReport {
    uint64_t n_events, n_scored; /* scored: uses of items after training and grace */
    uint64_t n_objects;          /* objects that these uses needed */
    uint64_t n_selected;         /* of n_objects: selected by the previous prediction */
    uint64_t n_cached;  /* of n_objects: in the cache, by prediction or LRU, and had arrived */
    uint64_t n_late;    /* of n_objects: still being read */
    uint64_t n_covered; /* uses of which all objects were selected; a use without objects does not
                           count */
    uint64_t n_first;   /* uses whose item was the likeliest guess */
    uint64_t n_reads, n_reads_used; /* objects read for predictions, and those of them that were
                                       used before they left the cache */
    uint64_t read_bytes, wasted_bytes;
    double log_loss;      /* sum of -ln P(what was and what was not used within the horizon) */
    uint64_t n_log_loss;  /* number of prediction points in that sum */
    double next_log_loss; /* sum of -ln of the normalised probability of the next item */
    SimulateBin bins[SIMULATE_BINS];
    double stall_usec;  /* sum over scored uses: from the use until all its objects were read */
    double lead_usec;   /* sum over used reads: from the read to the use */
    uint64_t n_in_time; /* used reads that had arrived */
    size_t state_bytes;
    uint64_t observe_nsec, n_observed, predict_nsec, n_predicted;

    /* The ratios; NAN if nothing was counted. */
    double hit_rate;       /* thesis 6.1.1: n_selected / n_objects */
    double cache_hit_rate; /* n_cached / n_objects */
    double accuracy;       /* n_reads_used / n_reads; NAN also if
                            * only empty files were read */
    double coverage;       /* n_covered / n_scored */
    double first_right;    /* n_first / n_scored */
    double waste;          /* wasted_bytes / read_bytes */
} SimulateReport;

/* Runs the events through `p`. Returns 0, -EINVAL (parameters or input are inconsistent),
 * -ENOMEM. */
int simulate(const SimulateInput *in, const SimulateParameters *parameters, Predictor *p,
             SimulateReport *ret);
