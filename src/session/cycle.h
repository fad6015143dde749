/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The cycle of the thesis's daemon (preload 3.3, 4.3, 5.2) as a state machine: starts and exits of
 * applications come in, what should be in memory now comes out, worthiest first and cut at the
 * budget. Pure; prefetch-thread.h brings in what is missing of it.
 *
 * What will be needed is the mixture's to say (predict/mixture.h), which learns on while the
 * session goes on. Maps are ordered by the probability that they are needed before the next cycle
 * (4.16, with P(map | application) as the model has seen it), and one that is used before the
 * session ends with less than `minimum_use` is left alone, whatever room there is
 * (docs/predictors.md). Metadata comes last, by the share of sessions that needed it: nothing tells
 * who looks for a name that is not there, and then the directory's block is read all the same.
 *
 * Which applications count: those of the session's user (of everybody, if that is not known) of
 * which the model knows maps of `minsize_bytes` in all (thesis 5.2.1, model.minsize: it keeps
 * short-lived tools out), and that no prefix excludes. An application runs as long as one of its
 * processes does, however many starts and exits are reported of it. */

#include "base/uid.h"
#include "base/vocabulary.h"
#include "model/model.h"
#include "plan/budget.h"
#include "predict/chains.h"
#include "session/prefetch-request.h"

#define CYCLE_APPLICATIONS_MAX 20000U   /* told apart; others are not followed */
#define CYCLE_OBJECTS_MAX      2000000U /* parts of files, directories, metadata ranges */

typedef struct CycleParameters {
    usec_t interval;        /* between two predictions, and how far each looks ahead; > 0 */
    bool scan;              /* learn from what starts and exits (thesis 5.2.2, doscan) */
    bool predict;           /* ask for anything at all (dopredict) */
    bool battery;           /* also on battery */
    uint64_t minsize_bytes; /* of an application's maps */
    BudgetParameters budget;
    double minimum_use;      /* 0..1 */
    double maximum_pressure; /* percent of time in which somebody waits for memory */
    /* Prefixes of paths, separated by blanks, of applications and files that are left alone; "!"
     * before one makes an exception. The longest that fits a path decides. NULL: none. */
    const char *exclude;
} CycleParameters;

/* 20 s, scanning, predicting, not on battery, 2,000,000 bytes, half of MemAvailable, 0.2, 10 %. */
void cycle_parameters_init(CycleParameters *p);

/* The machine at the moment of a decision. */
typedef struct CycleSnapshot {
    MemoryFacts memory;
    double memory_pressure; /* PSI, some avg10, percent; 0 where the kernel does not say */
    bool on_battery;
} CycleSnapshot;

typedef struct CycleEvent {
    EventTime time;
    uint32_t uid; /* UID_INVALID: unknown */
    bool started; /* else exited */
    const char *path;
} CycleEvent;

typedef enum CycleVerdict {
    CYCLE_PREFETCH,
    CYCLE_OFF,      /* predict is off */
    CYCLE_BATTERY,  /* nothing, to save power */
    CYCLE_PRESSURE, /* nothing, memory is short */
    _CYCLE_VERDICT_MAX,
    _CYCLE_VERDICT_INVALID = -EINVAL,
} CycleVerdict;

const char *cycle_verdict_to_string(CycleVerdict v);

typedef struct CycleDecision {
    CycleVerdict verdict;
    const PrefetchRequest
            *requests; /* borrowed, until the next call; by falling worth, then metadata */
    size_t n_requests;
    uint64_t requested_bytes, budget_bytes;
    size_t n_beyond;  /* left out because they did not fit the budget */
    size_t n_refused; /* left out by cycle_refuse() */
} CycleDecision;

typedef struct Cycle Cycle;

/* A cycle with the model's maps and chains. `m` may be NULL (nothing is known); its chains are
 * taken out of it, otherwise new ones of `halflife_usec` are begun. `uid`: whose session it is,
 * UID_INVALID: unknown. 0, -EINVAL (parameters out of range), -ENOMEM. */
int cycle_new(const CycleParameters *p, Model *m, usec_t halflife_usec, uint32_t uid, Cycle **ret);
Cycle *cycle_free(Cycle *c);
DEFINE_CLEANUP(Cycle *, cycle_free);
#define _cleanup_cycle_ _cleanup_(cycle_freep)

/* Other parameters and maps from now on; what runs and what was learned of it stays. 0 or an error
 * as above, and then nothing has changed. */
int cycle_reload(Cycle *c, const CycleParameters *p, const Model *m);

/* The session begins; ends. Whatever starts before it has begun, begins it. */
int cycle_begin(Cycle *c, EventTime t);
void cycle_end(Cycle *c, EventTime t);

/* 1 if an application runs now that did not: time to decide anew; 0 otherwise; -ENOMEM. Times that
 * run back count as the latest seen, exits without a start are ignored. */
int cycle_observe(Cycle *c, const CycleEvent *e);

/* What should be in memory now. 0 or -ENOMEM. */
int cycle_decide(Cycle *c, EventTime t, const CycleSnapshot *s, CycleDecision *ret);

/* The path must not be in this user's set (base/ownership.h): it is left out of all decisions of
 * this cycle from the next one on, and no longer takes a share of the budget. Paths that the model
 * does not know are ignored; the first CYCLE_REFUSED_MAX count. 0 or -ENOMEM. */
#define CYCLE_REFUSED_MAX 100000U
int cycle_refuse(Cycle *c, const char *path);

/* What has been learned, as if the session ended now, to be put into a model and saved; chains of
 * the model's half-life. The caller frees. 0 or -ENOMEM. */
int cycle_learned(const Cycle *c, Chains **ret);

/* How many events have been learned from: whether there is anything to save. */
uint64_t cycle_n_learned(const Cycle *c);

/* The latest decision and what it came from, for people: an object of json-c's. NULL: out of
 * memory. */
struct json_object *cycle_dump(const Cycle *c);
