/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The cycle of the thesis's daemon (preload 3.3, 4.3, 5.2) as a state machine: its inputs are
 * starts and exits of applications, its outputs are requests for objects that should be in memory.
 * It is pure; prefetch-thread.h executes the requests.
 *
 * The mixture (predict/mixture.h) predicts which applications will start, and continues to learn
 * during the session. The model knows which objects each application needs: byte ranges of files,
 * directories, metadata ranges. Requests are ordered by the object score (predict/object-scores.h):
 * the time that a request saves per byte of memory, times the result of equation 4.16 for the
 * scores of the applications (mixture_rank()). predict/selection.h decides which objects are
 * requested. An object counts as present if the session has requested it before, or has started an
 * application that needs it. Metadata comes last, ordered by the share of the user's sessions that
 * needed it. It is not predicted from applications, because no event reports its use: for example,
 * the lookup of a name that does not exist reads a directory's block.
 *
 * An application counts under three conditions. The session's user runs it, or it is unknown who
 * runs it or whose session it is. The objects of the application that the model knows have at least
 * `minsize_bytes` together (thesis 5.2.1, model.minsize); this excludes short-lived tools. No
 * prefix in `exclude` excludes it. An application runs while at least one of its processes runs. */

#include "base/uid.h"
#include "base/vocabulary.h"
#include "chains/chains.h"
#include "model/model.h"
#include "plan/budget.h"
#include "predict/selection.h"
#include "session/prefetch-request.h"

/* Applications and objects beyond these numbers are ignored. */
#define CYCLE_APPLICATIONS_MAX 20000U
#define CYCLE_OBJECTS_MAX      2000000U
#define CYCLE_PARTS_MAX        6000000U

typedef struct CycleParameters {
    usec_t interval;        /* between two cycles; > 0 */
    bool scan;              /* learn from starts and exits (thesis 5.2.2, doscan) */
    bool predict;           /* make requests at all (dopredict) */
    bool battery;           /* also make requests on battery */
    uint64_t minsize_bytes; /* minimum size of all objects of an application together */
    BudgetParameters budget;
    SelectionParameters selection;
    double maximum_pressure; /* percent of time in which tasks wait for memory */
    /* Applications and files to leave out: prefixes of paths, separated by blanks; "!" before one
     * makes an exception. The longest prefix that fits a path decides. NULL: none. */
    const char *exclude;
} CycleParameters;

/* Sets the defaults: an interval of 20 s, learning and prediction on, nothing on battery, at least
 * 2,000,000 bytes for each application, half of MemAvailable as the budget,
 * SELECTION_PARAMETERS_DEFAULT, maximum_pressure 10 %. */
void cycle_parameters_init(CycleParameters *p);

/* The machine at the moment of a decision. */
typedef struct CycleSnapshot {
    MemoryFacts memory;
    double memory_pressure; /* PSI, some avg10, percent; 0 if the kernel does not report it */
    bool on_battery;
    bool hot; /* system/thermal.h */
} CycleSnapshot;

typedef struct CycleEvent {
    EventTime time;
    uint32_t uid; /* UID_INVALID: unknown */
    bool started; /* false: it exited */
    const char *path;
} CycleEvent;

typedef enum CycleVerdict {
    CYCLE_PREFETCH,
    CYCLE_OFF,      /* no requests: prediction is off */
    CYCLE_BATTERY,  /* no requests: the machine runs on battery */
    CYCLE_HEAT,     /* no requests: the machine is hot */
    CYCLE_PRESSURE, /* no requests: memory is short */
    _CYCLE_VERDICT_MAX,
    _CYCLE_VERDICT_INVALID = -EINVAL,
} CycleVerdict;

const char *cycle_verdict_to_string(CycleVerdict v);

typedef struct CycleDecision {
    CycleVerdict verdict;
    /* The most valuable first, metadata last. The array is valid until the next call of
     * cycle_decide(), and the paths are valid until cycle_reload(). Both are borrowed. All requests
     * of one file share the pointer `path`. */
    const PrefetchRequest *requests;
    size_t n_requests;
    uint64_t requested_bytes, budget_bytes;
    size_t n_beyond;   /* left out because they did not fit the budget */
    size_t n_wasteful; /* left out because of the bound on waste */
    size_t n_refused;  /* left out by cycle_refuse() */
} CycleDecision;

typedef struct Cycle Cycle;

/* Makes a cycle that knows the model's objects and chains. `m` may be NULL, if nothing was learned.
 * The cycle takes the chains out of the model. If the model has none, the cycle begins new ones
 * with the model's half-life, or with `halflife_usec` if `m` is NULL. `uid` is the user of the
 * session, or UID_INVALID for an unknown user or several users. Returns 0, -EINVAL (parameters out
 * of range), or -ENOMEM. On failure the chains stay in the model. */
int cycle_new(const CycleParameters *p, Model *m, usec_t halflife_usec, uint32_t uid, Cycle **ret);
Cycle *cycle_free(Cycle *c);
DEFINE_CLEANUP(Cycle *, cycle_free);
#define _cleanup_cycle_ _cleanup_(cycle_freep)

/* Replaces the parameters and the objects. Running applications, learned chains and refused paths
 * stay. Returns 0, or an error as from cycle_new(); after an error nothing has changed. */
int cycle_reload(Cycle *c, const CycleParameters *p, const Model *m);

/* Begins a session. An event outside of a session begins one, too. Returns 0 or -ENOMEM. */
int cycle_begin(Cycle *c, EventTime t);

/* See mixture_set_utc_offset(). */
void cycle_set_utc_offset(Cycle *c, int64_t seconds);

/* Ends the session. */
void cycle_end(Cycle *c, EventTime t);

/* Processes a start or exit. Returns 1 if an application runs now that did not run before: a new
 * decision is then due. Returns 0 if none started, or -ENOMEM. A time before that of the previous
 * event counts as that time. An exit without a start is ignored. */
int cycle_observe(Cycle *c, const CycleEvent *e);

/* Decides which objects should be in memory now. Returns 0 or -ENOMEM. */
int cycle_decide(Cycle *c, EventTime t, const CycleSnapshot *s, CycleDecision *ret);

/* Excludes a file or directory from all later decisions of this cycle, because this user's set must
 * not contain it (model/ownership.h). It then takes no share of the budget. A path that the model
 * does not know is ignored; so are paths beyond CYCLE_REFUSED_MAX. Returns 0 or -ENOMEM. */
#define CYCLE_REFUSED_MAX 100000U
int cycle_refuse(Cycle *c, const char *path);

/* Makes a copy of the chains as they would be if the session ended now, to be saved. The caller
 * frees it. Returns 0 or -ENOMEM. */
int cycle_learned(const Cycle *c, Chains **ret);

/* Returns the number of starts and exits that this cycle has learned from. */
uint64_t cycle_n_learned(const Cycle *c);

/* Returns the chains_revision() of the chains. While it is unchanged, there is nothing to save. */
uint64_t cycle_revision(const Cycle *c);

/* Returns true if the list excludes the path: see CycleParameters.exclude. */
bool cycle_excludes(const char *list, const char *path);

/* Returns the latest decision and what it is based on, as JSON for people (docs/formats.md). The
 * caller releases it. Returns NULL if out of memory. */
struct json_object *cycle_dump(const Cycle *c);
