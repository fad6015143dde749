/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the source files of `headstart plan` share. */

#include "command/cli.h"
#include "command/progress.h"
#include "model/model.h"
#include "plan/plan.h"
#include "view/launch-history.h"

#include <limits.h>

typedef struct Planning {
    const Context *c;
    int state_fd;
    /* Either may be NULL; `shipped` serves stages that `model` does not know. */
    Model *model, *shipped;
    VolumeTable volumes;
    char root[PATH_MAX]; /* resolved */
    uint64_t budget_bytes;
    const char *policy; /* --policy, or NULL */
    usec_t deadline;
    double min_probability;
    bool dry_run;
    uint32_t control_intervals[_STAGE_MAX];
    uint64_t salts[_STAGE_MAX]; /* of all packs of a stage, if salt_known */
    bool salt_known[_STAGE_MAX];
    HistoryBoots boots;
    Benefits benefits; /* whether a policy was shown to do harm, and to whom */
    LaunchHistory launches;
    Table *summaries;
    uint64_t n_planned, n_failed; /* packs of stages */
    uint64_t n_launch_packs;
    Progress progress;
    uint64_t n_tried, n_to_try; /* packs, for the progress */
    json_object *operations;    /* --dry-run --json: one array for each pack */
} Planning;

void planning_done(Planning *p);

/* Loads the models, the history and the table of volumes. Returns 0, or an error that was
 * reported. */
int planning_load(Planning *p);

/* Reads /proc/meminfo and sets the budget. Returns 0, or an error that was reported. */
int planning_set_budget(Planning *p, const Config *config);

/* Returns true if most logins are automatic logins of one user, and stores the user. */
bool planning_has_autologin(const Planning *p, uint32_t *ret_uid);

/* Predicts what a stage of the user needs (UID_INVALID: of all users) from what this machine has
 * learned. If this machine has learned nothing of the stage, the prediction for all users comes
 * from the shipped model. The boot contains the automatic login that follows it. *ret_learned_until
 * is the time of the last learned session, and *ret_observed_until that of the last one whose
 * metadata was observed; both are now for the shipped model. The caller frees *ret. Returns 0 or
 * -ENOMEM. */
int planning_predict(const Planning *p, Stage stage, uint32_t uid, Prediction **ret,
                     usec_t *ret_learned_until, usec_t *ret_observed_until);

/* Plans one pack: the pack of a stage for all users (`uid` UID_INVALID), or the pack of one user.
 * Writes it, or prints it with --dry-run. If the pack cannot be planned or written, the old pack
 * stays. Returns 1 if the pack was planned; 0 if the model knows nothing of this stage and user; or
 * a negative errno, which was reported. */
int planning_make_pack(Planning *p, Stage stage, uint32_t uid);

/* Plans the packs of all users' applications, and removes the other packs of applications. A
 * pack that cannot be planned is left as it was. Returns 0, or an error that was reported. */
int planning_make_launch_packs(Planning *p);

/* Removes the files of the state directory for which `unneeded` is true. A file that cannot be
 * removed is reported and stays. Returns 0, or an error that was reported. */
int planning_remove_files(const Planning *p, bool (*unneeded)(const void *arg, const char *name),
                          const void *arg);

/* Returns the salt of the pack that will be replaced, so that control sessions stay evenly
 * distributed. If there is no such pack, returns a new salt. */
uint64_t planning_choose_salt(const Planning *p, const char *name);

/* planning_table() creates the table of planned packs, and planning_add_summary() adds a row to
 * it. */
Table *planning_table(void);
void planning_add_summary(Planning *p, uint32_t uid, const PackContent *content,
                          const PlanSummary *s);

/* planning_print_operations() prints what the pack contains: metadata and data by place, and files
 * by inode. With --json= it only collects them. planning_print() prints the table of planned packs,
 * or with --json= everything. Both return 0, or an error that was reported. */
int planning_print_operations(Planning *p, const char *what, const PackContent *content);
int planning_print(Planning *p);
