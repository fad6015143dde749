/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The model: everything that was learned from all traces (thesis 3.5: exes, maps), as decayed sums.
 * Learning makes a model of one trace and merges it into the model. All tables are sorted and
 * contain neither duplicates nor entries whose sums have decayed to zero, so that equal knowledge
 * gives equal bytes. Pure.
 *
 * Each session shows which applications started, and which files they used. Residency is observed
 * only in a session without replay. In a session with a replayed pack (TRACE_REPLAYED), residency
 * shows what replay read. Without CAP_FOWNER (TRACE_RESIDENCY_OFF) it is a guess. Such residency is
 * stored separately (RESIDENCY_ASSUMED). It is used only for files without observed residency. No
 * pack contained such a file when a session opened it for the first time, so the assumed residency
 * of that session shows which ranges it used. In an exact recording (TRACE_EXACT), the kernel reads
 * little ahead, so residency shows few pages that nobody used. It is stored separately, too
 * (RESIDENCY_EXACT), and a file that has such residency is planned by it alone. Metadata of
 * replayed sessions is ignored. model_trace_unfit() decides which traces are not learned at all.
 *
 * The model's clock is the latest moment of which the model has learned. It never runs back, and
 * skips implausible steps of the wall clock (chains/decay-clock.h), so that a wrong date erases
 * nothing. A trace with a time stamp after now, or before MODEL_CLOCK_MIN (a machine without a
 * clock of its own), counts as made now. If now is before MODEL_CLOCK_MIN, or before
 * model_wall_clock() by at most DECAYED_SUM_SPAN half-lives, model_wall_clock() counts as now:
 * decay pauses and nothing is lost. A trace with an early but credible time stamp decays as if it
 * were that old, and has no other effect. Only a trace of the latest weeks shows whether the clock
 * has stepped.
 *
 * `machines` counts the machines of a fleet. A model that a machine has learned contains no such
 * counts. model_make_portable() counts the model as one machine: each row gets 1 in the generation
 * of the latest sessions that the row contains. Merging adds these counts like sums. A machine's
 * count therefore expires together with the sessions of that machine. The counts do not depend on
 * the order in which models are merged. A machine whose model is merged twice counts twice. */

#include "base/uid.h"
#include "chains/chains.h"
#include "chains/decay-clock.h"
#include "model/prediction.h"
#include "model/weighted-ranges.h"
#include "trace/trace.h"

#define MODEL_FORMAT_NAME    "headstart-model"
#define MODEL_FORMAT_VERSION 4 /* versions 1 to 3 are still read */
#define MODEL_JSON_SIZE_MAX  (512U * 1024 * 1024)
#define MODEL_LEARNED_MAX    128U
#define MODEL_NONE           UINT32_MAX

/* Assumed and extended ranges end at multiples of this: the smallest page of all machines and the
 * alignment of packs. A machine with larger pages reads the rest of a page anyway. */
#define MODEL_ALIGN_BYTES UINT64_C(4096)

/* Limits that the reader (-EBADMSG) and the merger (-E2BIG) enforce. Real machines stay far below
 * them, and a hostile file within them cannot exhaust the memory. */
#define MODEL_HALFLIFE_MAX ((usec_t)INT64_MAX / DECAYED_SUM_SPAN)
#define MODEL_FILES_MAX    4000000U
#define MODEL_USES_MAX     16000000U
#define MODEL_STAGES_MAX   65536U
#define MODEL_RANGES_MAX   4000000U /* of one file or filesystem */
/* Rows of metadata that applications need, of one stage. Merging keeps this number of rows. */
#define MODEL_NEEDED_MAX 4096U

#define MODEL_CLOCK_MIN DECAY_CLOCK_MIN

typedef struct ModelFile {
    char *path;
    bool directory;          /* as_directory is not zero */
    DecayedSum as_directory; /* sessions that opened it as a directory */
} ModelFile;

/* An application in one stage: sessions in which it was active (started, or opened something). */
typedef struct ModelApplication {
    uint32_t file; /* into files: the executable; MODEL_NONE (sorted last): opens by unknown
                      applications */
    DecayedSum active;
    DecayedSum launched; /* of these, sessions in which its start was observed */
    DecayedSum machines; /* that contributed to `active` */
} ModelApplication;

/* How well a session shows which parts of a file it used; the best comes first. */
typedef enum Residency {
    RESIDENCY_EXACT,
    RESIDENCY_OBSERVED,
    RESIDENCY_ASSUMED,
    _RESIDENCY_MAX,
} Residency;

typedef struct ModelResidency {
    DecayedSum sessions; /* that used the file and show its residency this well */
    WeightedRanges ranges;
} ModelResidency;

/* An application's use of a file. Counts the sessions in which the application opened the file. In
 * the stage `session` it also counts those in which another program opened the file mainly within
 * three seconds after starts of the application (model/model-uses.h), or a helper of a start opened
 * it (model/model-launch.h). */
typedef struct ModelUse {
    uint32_t application; /* into the stage's applications */
    uint32_t file;        /* into the model's files */
    DecayedSum used;
    DecayedSum launched; /* of these, sessions in which the application's start opened the file */
    DecayedSum delay;    /* times from that start to the first opening */
    DecayedSum machines; /* that contributed to `used` */
    ModelResidency *touched; /* of the sessions in `launched`, those that show which pages of the
                                file the start needed (TraceTouched), and these pages; NULL: none */
} ModelUse;

typedef struct ModelStageFile {
    uint32_t file;
    DecayedSum used;      /* sessions in which any process opened it or looked it up */
    DecayedSum looked_up; /* of these, sessions in which no process opened it */
    DecayedSum first_use; /* times (decayed_sum_of_time()) from the stage's start to the first open;
                             of opens only */
    DecayedSum machines;  /* that contributed to `used` */
    ModelResidency residency[_RESIDENCY_MAX];
} ModelStageFile; /* every part is within its whole: decayed_sum_within() */

/* The metadata of a filesystem that a stage reads. Replay reads metadata, too, so replayed sessions
 * do not show what the stage itself needs. They have a row of their own. Further rows have the
 * metadata that control starts of one application needed. */
typedef struct ModelMetadata {
    char *uuid;
    char *application;   /* path of the executable; NULL: of the stage */
    bool assumed;        /* of replayed sessions; false in rows of applications */
    DecayedSum observed; /* sessions whose metadata of this filesystem was observed */
    WeightedRanges ranges;
} ModelMetadata;

/* The time that a stage takes until it is ready, without replay. */
typedef struct ModelTiming {
    DecayedSum sessions;
    DecayedSum ready;   /* times from the stage's start */
    DecayedSum stalled; /* the part of these times in which tasks waited for I/O: trace_waited() */
} ModelTiming;

/* One stage of one user (uid UID_INVALID where there is no user: boot). */
typedef struct ModelStage {
    Stage stage;
    uint32_t uid;
    DecayedSum sessions;
    DecayedSum duration;   /* times */
    DecayedSum late;       /* of the sessions: boots whose beginning was not recorded */
    DecayedSum autologins; /* of the sessions: automatic logins */
    DecayedSum machines;   /* that contributed to `sessions`; zero: they are not counted here */
    ModelTiming timing;
    ModelApplication *applications;
    size_t n_applications, allocated_applications;
    ModelUse *uses; /* by application, then file */
    size_t n_uses, allocated_uses;
    ModelStageFile *files;
    size_t n_files, allocated_files;
    ModelMetadata *metadata; /* by uuid, then `assumed`, then application */
    size_t n_metadata, allocated_metadata;
} ModelStage;

/* Returns the best residency that is known of the file; its sessions are zero if none is known. */
static inline const ModelResidency *model_best_residency(const ModelStageFile *f)
{
    Residency i = RESIDENCY_EXACT;

    while (i < _RESIDENCY_MAX - 1 && decayed_sum_is_zero(f->residency[i].sessions))
        i++;
    return &f->residency[i];
}

/* A trace that was learned. The list keeps a trace from being learned twice. */
typedef struct ModelLearned {
    usec_t at;             /* time of the trace on the model's clock; if the list was full, the
                              model's clock when it was learned */
    usec_t start_realtime; /* start time that the trace states */
    uint64_t id;           /* of boot, stage and start: model_trace_id() */
} ModelLearned;

typedef struct Model {
    usec_t halflife_usec;
    usec_t clock;              /* time of the latest session it knows; 0: none */
    int64_t clock_offset_usec; /* DecayClock.offset_usec */
    uint64_t generation; /* generation of all its DecayedSums (chains/decayed-sum.h), which is that
                            of `clock` */
    ModelFile *files;    /* by path */
    size_t n_files, allocated_files;
    ModelStage *stages; /* by stage, then uid */
    size_t n_stages, allocated_stages;
    ModelLearned *learned; /* by `at`, then start, then id; the newest MODEL_LEARNED_MAX */
    size_t n_learned, allocated_learned;
    Chains *chains; /* which applications follow which, by path; NULL: never learned. Same half-life
                     */
} Model;

/* Makes an empty model with this half-life (> 0). NULL if out of memory. */
Model *model_new(usec_t halflife_usec);
Model *model_free(Model *m);
DEFINE_CLEANUP(Model *, model_free);
#define _cleanup_model_ _cleanup_(model_freep)

/* Merges two models: *ret contains everything that either of them knows. Merging is exact,
 * associative and commutative (chains/decayed-sum.h). It needs the memory of two models and their
 * sum, so any number of models can be merged one after the other. Returns 0, -EINVAL if the
 * half-lives differ, -EBUSY if a session of the chains is under way, -E2BIG, -ENOMEM. */
int model_merge(const Model *a, const Model *b, Model **ret);

/* Returns true if a sum of times has saturated. All other sums are smaller. Merging stays exact,
 * but rates and durations are wrong. The times of 160,000 machines that are never switched off do
 * not saturate, with the default half-life. */
bool model_is_full(const Model *m);

/* Returns why a trace does not show an ordinary session, as a static text, or NULL if it may be
 * learned. */
const char *model_trace_unfit(const Model *m, const Trace *t);

/* Returns true if the trace was learned already. */
bool model_knows_trace(const Model *m, const Trace *t);

/* Learns one trace: replaces *m by its merger with a model of that trace. Returns 0, -EALREADY
 * (learned before), -E2BIG, -ENOMEM. On failure *m is untouched. */
int model_learn(Model **m, const Trace *t, usec_t now_realtime);

/* Prepares a model for merging with models of other machines, if it was made with a wrong clock. A
 * clock that is more than DECAYED_SUM_SPAN half-lives ahead is set back to `now_realtime`. A clock
 * that is behind the wall clock of the latest session (model_wall_clock()) is set to that time. The
 * relative weights of the sessions stay the same. The chains, which have their own clock, are set
 * in the same way, unless a session of theirs is under way. Changes nothing if `now_realtime` is
 * before MODEL_CLOCK_MIN. Returns 0 or -ENOMEM. */
int model_settle_clock(Model **m, usec_t now_realtime);

/* Renames files. to[file] is NULL (unchanged), "" (remove the file and all that is known of it), or
 * the new path, which the model then owns. If two files get the same name, the one that more
 * sessions used keeps it, and the other is removed. Chains do not change: an application that was
 * removed does not start again, so its sums decay. Returns 0, or -ENOMEM; the model is unusable
 * after that. */
int model_move_files(Model *m, char **to);

typedef struct ModelResize {
    uint32_t file; /* into the model's files */
    uint64_t old_size, new_size;
} ModelResize;

/* Adapts the learned ranges of files to their new sizes. `resizes` is sorted by file, without
 * duplicates. Ranges that reached the old end reach the
 * new end afterwards, because the file was read whole, or its end contains the tables of a library.
 * Other ranges keep their offsets. Most changes of an upgrade move the content by a few pages only,
 * and the kernel reads ahead groups of pages, so the old range still covers most of the content.
 * Planning drops what lies beyond a new, smaller size. */
void model_stretch_files(Model *m, const ModelResize *resizes, size_t n);

/* Returns how many machines a count contains (DecayedSum `machines`). */
uint64_t model_count_machines(DecayedSum machines);

/* Keeps only what at least `min_machines` machines (> 0) have contributed to: stages, applications,
 * files, and uses of a file by an application. Also drops what model_make_portable() leaves out,
 * for models that were not made by it. The ranges of a file stay or go with the file. Like
 * model_prune(), call it once, after all merging. Returns 0 or -ENOMEM. */
int model_drop_rare(Model **m, uint64_t min_machines);

/* Drops files and applications that less than `min_probability` of a stage's sessions used, so that
 * names of temporary files do not accumulate. Also drops the assumed residency of files that have
 * an observed residency, and the negligible parts of the chains (chains_prune()). The applications
 * of the chains get new ids. While a session of the chains is under way, the chains stay as they
 * are. Deterministic. Merging does not prune, because it must stay exact; a fleet merges first and
 * prunes once. Returns 0 or -ENOMEM. */
int model_prune(Model **m, double min_probability);

/* Convert to and from JSON text (docs/formats.md). Saving a loaded model gives the same bytes.
 * Return the errors of trace_to_json() and trace_from_json(); model_to_json() also returns -EBUSY
 * and -EINVAL of chains_write(). */
int model_to_json(const Model *m, char **ret, size_t *ret_size);
int model_from_json(const char *text, size_t size, Model **ret, char **ret_error);

/* Reads a model like model_from_json(), but without the chains, which take more time than all other
 * parts. The result serves queries about files and stages; it must not be written. */
int model_stages_from_json(const char *text, size_t size, Model **ret, char **ret_error);

/* Sums the stages in `stages` (bits 1 << Stage) of that user (UID_INVALID: of all users). The
 * result is the only stage of *ret; *ret has no stage if nothing was learned of them. Returns 0,
 * -E2BIG, -ENOMEM. */
int model_sum_stages(const Model *m, unsigned stages, uint32_t uid, Model **ret);

/* Sets *ret to the part of the model that is valid on another machine of the distribution and
 * identifies no user: for each stage the sum over all users, with the files that
 * model_path_is_portable() accepts. It has no metadata (blocks), no chains, no traces and nothing
 * that model_drop_machine_facts() drops, and counts as one machine. All sums are rounded to
 * DECAYED_SUM_ROUNDED_BITS significant bits, because an exact sum of few sessions shows when they
 * began. The portable part of *ret is *ret itself. Returns 0, -E2BIG, -ENOMEM. */
int model_make_portable(const Model *m, Model **ret);

/* Drops what describes the machine that has learned the model: the times of its stages (`timing`),
 * and the automatic logins of stages without a user. Call it for a model of other machines before
 * merging it into the model of this machine, or before predicting from it: with other disks and
 * processors, their times say nothing about this machine. */
void model_drop_machine_facts(Model *m);

/* Returns true for paths below directories of the distribution (/usr, /etc, …), except where the
 * administrator chooses the names (/usr/local, /etc/NetworkManager, …), and for a list of names
 * that are the same on every machine that has them, without the names below them (/var/lib,
 * /etc/systemd/system). */
bool model_path_is_portable(const char *path);

/* Returns true if the beginning of most learned boots was not recorded, so that the model lacks
 * what the system manager reads first. */
bool model_boots_are_late(const Model *m);

/* Returns true if most of the learned logins were automatic ones of one user, *ret_uid. Logins of
 * unknown users do not count: those of other machines have no user (model_make_portable()). */
bool model_predict_autologin(const Model *m, uint32_t *ret_uid);

/* Predicts what stage `stage` of user `uid` (UID_INVALID: all users) needs. P(file) is the share of
 * the sessions that used the file. (Eq. 4.15 of the thesis takes the applications that use a file
 * for independent. It serves the session cycle, which knows the chance of each application.)
 * P(map) is P(file opened) * resident / observed, with the assumed sums if nothing was observed.
 * The probability of a metadata range is its share of the observed sessions. The chains are not
 * used here; predict/mixture.h uses them. *ret has no files if the stage was never learned. Returns
 * 0, -E2BIG, -ENOMEM. */
int model_predict_stage(const Model *m, Stage stage, uint32_t uid, Prediction **ret);

/* The start of an application, as the sessions of one user, or of everybody, have observed it. */
typedef struct ModelLaunch {
    const char *path; /* borrowed from the model of the list */
    uint32_t application;
    double sessions; /* in which its start was observed; an older one counts less, a new one 1 */
    uint64_t bytes;  /* of the ranges that at least the share `min_probability` of these sessions
                        needed */
    uint64_t touched_bytes; /* of these, ranges that its own processes touched */
    bool helper;     /* in nearly all of these sessions it was started while another application
                        started, whose start reads its executable, too */
    bool controlled; /* a control start has shown which metadata it needs */
} ModelLaunch;

/* Lists the applications whose starts were observed in the only stage of `sum`
 * (model_sum_stages()), if these starts need at least `min_bytes`. They are sorted by sessions
 * times bytes, the largest product first, then by path. Helpers come last, because gimp starts a
 * hundred programs. They are sorted by their touched bytes first: while a shell starts `ls`, other
 * programs read most of what is read. A helper may be an application of its own that was started
 * right after another one. The caller frees *ret. Returns 0 or -ENOMEM. */
int model_list_launches(const Model *sum, double min_probability, uint64_t min_bytes,
                        ModelLaunch **ret, size_t *ret_n);

/* Predicts what a start of the application reads, with first uses counted from the start. Its
 * metadata is what control starts of the application needed. For a filesystem without such starts
 * the planner derives the metadata from the files, within what the sessions have read (`seen`).
 * Returns 0 or -ENOMEM. */
int model_predict_launch(const Model *sum, uint32_t application, Prediction **ret);

/* Returns the sum of the sessions of a stage of the model, in units of one new session. */
double model_sessions(const Model *m, const ModelStage *s, usec_t now_realtime);

/* Returns the part of the sessions which used the file that opened it, from 0 to 1. The others only
 * looked it up: they needed its metadata and none of its data. */
double model_opened_share(const ModelStageFile *f);

/* Returns the mean time of the first open; 0 if nothing opened the file. */
usec_t model_first_use(const ModelStageFile *f);

/* Returns the wall clock at the time of the latest session. */
static inline usec_t model_wall_clock(const Model *m)
{
    return m->clock + (usec_t)m->clock_offset_usec;
}

/* Returns the index of the path in m->files, or MODEL_NONE. */
uint32_t model_find_file(const Model *m, const char *path);
