/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by the files of src/model only. */

#include "model/model.h"

void model_stage_done(ModelStage *s);

/* Frees what a use has beyond the row itself. */
void model_use_done(ModelUse *u);

/* Frees the ranges of a file. */
void model_stage_file_done(ModelStageFile *f);

/* Returns the id of a trace, which is computed from its boot id, stage and start. */
uint64_t model_trace_id(const Trace *t);

/* Removes from the table of files those that no stage names any more. Returns 0 or -ENOMEM. */
int model_drop_unused_files(Model *m);

/* Remove what belongs to one machine: the files that model_path_is_portable() refuses (0, or
 * -ENOMEM, which leaves an unusable model), and the metadata of a stage. */
int model_drop_local_files(Model *m);
void model_drop_metadata(ModelStage *s);

/* Rounds all sums of the stages and files (decayed_sum_round()), so that the sum of a file that a
 * single session used does not show when that session began. Sums of times become the rounded mean
 * times the rounded number of sessions. Counts of machines stay. Parts stay within their wholes, no
 * sum becomes zero, and a second call changes nothing. */
void model_round_sums(Model *m);

/* Frees what the row points to. */
void model_metadata_done(ModelMetadata *d);

/* Compares two ModelMetadata for qsort(): by uuid, then `assumed`, then application. */
int model_compare_metadata(const void *a, const void *b);

/* Keeps at most TRACE_VOLUMES_MAX observed rows of metadata, as many assumed ones, and
 * MODEL_NEEDED_MAX rows that applications need. Of the last it keeps those of the distribution's
 * applications first, and otherwise those that most sessions show. Returns 0 or -ENOMEM. */
int model_limit_metadata(ModelStage *s);

/* Compares two ModelUse for qsort(): by application, then file. */
int model_compare_uses(const void *a, const void *b);

/* Returns the application of the stage with that executable, or NULL. */
const ModelApplication *model_find_application(const ModelStage *s, uint32_t file);

/* Returns the application's use of the file, or NULL if it has none. */
ModelUse *model_find_use(const ModelStage *s, uint32_t application, uint32_t file);

/* Removes from a stage of `m` the applications whose sum of sessions has decayed to zero, with
 * their uses, and the metadata of applications that the stage does not have. `scratch` has room for
 * each application. */
void model_drop_expired_applications(const Model *m, ModelStage *s, uint32_t *scratch);

/* Returns the time of a trace on the model's clock. Sets *ret to the clock after that trace. */
usec_t model_observe_clock(const Model *m, usec_t start_realtime, usec_t now_realtime,
                           DecayClock *ret);

/* Adds the file with the ranges of `known` to a prediction. `needed` is the probability of the
 * file, and `data` that of its data. Returns 0 or -ENOMEM. */
int model_predict_file(const Model *m, const ModelStageFile *f, const ModelResidency *known,
                       double needed, double data, usec_t first_use, Prediction *p);

/* Appends the metadata of a filesystem to an array. Returns 0 or -ENOMEM. */
int model_predict_metadata(const ModelMetadata *d, PredictedMetadata **metadata, size_t *n,
                           size_t *allocated);

/* Compares two ModelLearned for qsort: by `at`, start, id. */
int model_compare_learned(const void *a, const void *b);

/* Replaces ModelFile.as_directory in `sum`, a sum of stages of `m`, by the values in `m`. Each of
 * these stages was merged with the whole table of files, so merging has counted these values
 * several times. `sum` contains only files that are in use. */
void model_copy_directories(Model *sum, const Model *m);
