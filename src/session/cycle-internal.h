/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "predict/mixture.h"
#include "predict/object-scores.h"
#include "session/cycle.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

typedef struct CyclePath {
    char *text;   /* path of a file or directory; for metadata the filesystem's UUID */
    bool shipped; /* no user chose the name: model_path_is_portable() */
    bool refused; /* cycle_refuse() has excluded it */
} CyclePath;

typedef struct CycleObject {
    uint32_t path; /* into paths */
    PrefetchKind kind;
    Range range;
    float chance; /* for metadata: probability that a session needs it; other objects have one for
                     each application (`chances`) */
} CycleObject;

/* The objects of each application. The id of an application in the names of the chains is its index
 * in `items`. */
typedef struct CycleObjects {
    CyclePath *paths; /* those of files, sorted by text, then those of metadata */
    size_t n_paths, allocated_paths;
    size_t n_files; /* paths of files and directories */
    CycleObject *objects;
    double *worth; /* by object */
    size_t n_objects, allocated_objects;
    size_t first_metadata; /* the objects from this index on are metadata, the likeliest first; no
                              item has them */
    ItemParts *items;
    size_t n_items, allocated_items;
    uint32_t *parts;
    float *chances;
    size_t n_parts, allocated_parts, allocated_chances;
} CycleObjects;

void cycle_objects_done(CycleObjects *m);

/* Returns the file or directory of that name, or NULL. */
CyclePath *cycle_objects_find(CycleObjects *m, const char *path);

/* Fills an empty *m with objects and with the applications that count. Files, directories and
 * applications come from the logins and sessions of all users. P(object | application) is the share
 * of the user's own runs; everybody's share is a prior that counts like two sessions. The ranges of
 * a file are those of the user's own sessions, where these show them. For an application or a file
 * that the user has not used yet, the sessions of everybody count. Metadata comes from the sessions
 * of the user `uid` (UID_INVALID: of all users). Names of applications are added to the chains.
 * Objects beyond CYCLE_OBJECTS_MAX and applications that the chains cannot name are left out.
 * A file has at most 256 objects, and all applications together have at most CYCLE_PARTS_MAX parts.
 * Returns 0 or -ENOMEM. */
int cycle_objects_fill(CycleObjects *m, const Model *model, const CycleParameters *p, uint32_t uid,
                       Chains *chains);

/* A path that cycle_refuse() has excluded. */
typedef struct CycleRefusal {
    UT_hash_handle hh; /* hashed by path */
    bool oom;
    char path[];
} CycleRefusal;

/* The horizons of a prediction. */
enum {
    CYCLE_HORIZON_INTERVAL, /* before the next cycle */
    CYCLE_HORIZON_SESSION,  /* before the session ends */
    _CYCLE_HORIZON_MAX,
};

typedef struct CycleOffer {
    uint32_t object;
    double probability; /* of the request */
} CycleOffer;

struct Cycle {
    CycleParameters parameters;
    char *exclude; /* the memory of parameters.exclude */
    uint32_t uid;
    Mixture *mixture;
    CycleObjects objects;
    CycleRefusal *refusals; /* kept when the objects are replaced */

    /* What the session has requested, and by object, whether it has requested or used it. */
    SelectionReads reads;
    bool *present;
    size_t allocated_present;

    bool in_session, learning;
    uint64_t n_learned;

    Guesses guesses[_CYCLE_HORIZON_MAX];
    ObjectScores scores[_CYCLE_HORIZON_MAX];
    /* The candidates of the latest selection, in the order of their scores, and their objects. */
    SelectionCandidate *candidates;
    CycleOffer *offers;
    size_t n_candidates, allocated_candidates, allocated_offers;
    PrefetchRequest *requests;
    size_t allocated_requests;
    CycleDecision latest;
    uint64_t n_decisions;
};
