/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What has been learned from all traces (thesis 3.5: exes, maps), as fading sums. A model of one
 * trace is made by model_from_trace(); learning is merging that in. All tables are sorted and hold no
 * duplicates, so that equal knowledge is equal bytes. Pure. */

#include "model/prediction.h"
#include "model/segments.h"
#include "trace/trace.h"

#define MODEL_FORMAT_VERSION 1
#define MODEL_JSON_SIZE_MAX  (512U * 1024 * 1024)
#define MODEL_LEARNED_MAX    128U
#define MODEL_NONE           UINT32_MAX

typedef struct ModelFile {
    char *path;
    bool directory;
} ModelFile;

/* An application in one stage: sessions in which it was active (started, or opened something). */
typedef struct ModelApplication {
    uint32_t file; /* into files: the executable; MODEL_NONE (sorted last): opens of unknowns */
    Fade active;
} ModelApplication;

/* An application's use of a file: sessions in which it opened it. */
typedef struct ModelUse {
    uint32_t application; /* into the stage's applications */
    uint32_t file;        /* into the model's files */
    Fade used;
} ModelUse;

typedef struct ModelStageFile {
    uint32_t file;
    Fade used;      /* sessions in which anyone opened it */
    Fade truth;     /* those among them whose page residency is truth (DESIGN: truth after replay) */
    Fade first_use; /* weight times milliseconds from the stage's start to the first use */
    Segments resident;
} ModelStageFile;

typedef struct ModelMetadata {
    char *uuid;
    Fade truth; /* sessions whose metadata of this filesystem is truth */
    Segments ranges;
} ModelMetadata;

/* One stage of one user (uid MODEL_NONE where there is no user: boot). */
typedef struct ModelStage {
    Stage stage;
    uint32_t uid;
    Fade sessions;
    Fade duration; /* weight times milliseconds */
    ModelApplication *applications;
    size_t n_applications, allocated_applications;
    ModelUse *uses; /* by application, then file */
    size_t n_uses, allocated_uses;
    ModelStageFile *files;
    size_t n_files, allocated_files;
    ModelMetadata *metadata; /* by uuid */
    size_t n_metadata, allocated_metadata;
} ModelStage;

/* A trace that was learned: so that it is not learned twice. */
typedef struct ModelLearned {
    usec_t start_realtime;
    uint64_t id; /* of boot, stage and start: model_trace_id() */
} ModelLearned;

typedef struct Model {
    usec_t halflife;
    uint64_t generation; /* of all Fades in it: fade.h */
    ModelFile *files;    /* by path */
    size_t n_files, allocated_files;
    ModelStage *stages; /* by stage, then uid */
    size_t n_stages, allocated_stages;
    ModelLearned *learned; /* by time, then id; the newest MODEL_LEARNED_MAX */
    size_t n_learned, allocated_learned;
} Model;

/* An empty model with that half-life (> 0). NULL if out of memory. */
Model *model_new(usec_t halflife);
Model *model_free(Model *m);
DEFINE_CLEANUP(Model *, model_free);
#define _cleanup_model_ _cleanup_(model_freep)

/* A model that knows this one session. `now_realtime` bounds the trace's own time stamp (a clock
 * that ran ahead must not make everything else look old). 0, -ENOMEM. */
int model_from_trace(const Trace *t, usec_t halflife, usec_t now_realtime, Model **ret);

/* *ret = everything both know. Exact, associative and commutative (fade.h). -EINVAL if the
 * half-lives differ, -ENOMEM. */
int model_merge(const Model *a, const Model *b, Model **ret);

/* Why a trace says nothing of an ordinary session, or NULL if it may be learned. A static text. */
const char *model_trace_unfit(const Model *m, const Trace *t);

/* True if the trace was learned already. */
bool model_knows_trace(const Model *m, const Trace *t);

/* Learns one trace: *m is replaced by its merger with model_from_trace(). Fixes a model whose
 * generation lies after `now_realtime` (the clock was wrong when it was made). 0, -EALREADY
 * (learned before), -ENOMEM; *m is untouched on failure. */
int model_learn(Model **m, const Trace *t, usec_t now_realtime);

/* Drops files that less than `min_probability` of a stage's sessions used, so that names used once
 * (temporary files) do not pile up. Not part of merging, which stays exact. 0 or -ENOMEM. */
int model_prune(Model **m, double min_probability);

/* JSON text; save, load, save gives the same bytes. As trace_to_json() and trace_from_json(). */
int model_to_json(const Model *m, char **ret, size_t *ret_size);
int model_from_json(const char *text, size_t size, Model **ret, char **ret_error);

/* What stage `stage` of user `uid` (MODEL_NONE: whoever it will be) is predicted to need:
 * P(application active) = active / sessions, P(file) by eq. 4.16 of the thesis over the
 * applications that use it, in log space (5.8.1), P(map) = P(file) * resident / truth; metadata
 * ranges by their frequency. Empty (no files) if the stage was never learned. 0 or -ENOMEM. */
int model_predict_stage(const Model *m, Stage stage, uint32_t uid, Prediction **ret);

/* Sessions of a stage learned so far, in units of one new session (0.0: none). */
double model_sessions(const Model *m, Stage stage, uint32_t uid, usec_t now_realtime);

/* Index of the path in m->files, or MODEL_NONE. */
uint32_t model_find_file(const Model *m, const char *path);
