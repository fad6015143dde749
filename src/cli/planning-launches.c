/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Plans the launch sets of applications. Each is a pack (state/launch-packs.h) that headstartd
 * replays when the application starts. */

#include "base/clock.h"
#include "cli/planning.h"
#include "model/ownership.h"
#include "plan/bins.h"
#include "plan/plan-predict.h"
#include "session/cycle.h"
#include "session/mount-dirs.h"
#include "state/launch-packs.h"
#include "state/packs.h"

#include <inttypes.h>
#include <stdio.h>

/* The largest number of packs for one user, and of packs for all users. */
#define LAUNCH_PACKS_MAX 32U

/* Progress is shown in these shares of the work for one user. */
#define SHARES 1000U

/* The largest number of files in one pack. A pack contains the likeliest files. The start of a
 * desktop application reads about 2,000 files. */
#define LAUNCH_FILES_MAX 20000U

/* A range belongs to the set if at least this share of the starts needed it and other ranges of the
 * set are near it. A range that takes a seek of its own needs a larger share, because a start that
 * does not need the range loses time: about half of the seek that a needed range saves. */
#define LAUNCH_PROBABILITY_MIN      0.3
#define LAUNCH_ISOLATED_PROBABILITY 0.6
/* With fewer sessions than this, older ones counting less, the next start is the second one. */
#define LAUNCH_SECOND_SESSIONS 1.5

/* The packs that were written, or that stay because they could not be planned again. */
typedef struct Written {
    struct {
        uint32_t uid;
        uint64_t hash;
    } * packs;
    size_t n, allocated;
} Written;

/* Returns in how many boots the start is a control start once. The second start of an application
 * is always one, unless control sessions are switched off: the first one was recorded before there
 * was a set, and a control start shows what else the start reads, such as directories in which it
 * looks for names that do not exist. */
static uint32_t control_interval(const Planning *p, const ModelLaunch *l, const Benefit *benefit,
                                 usec_t now)
{
    bool second = !l->controlled && l->sessions < LAUNCH_SECOND_SESSIONS;

    return second && p->benefits.control_interval > 0
                   ? 1
                   : benefits_control_interval_of_launch(&p->benefits, benefit, now);
}

/* Chooses the policy of the application's set. A measurement outweighs a prediction. Recorded
 * starts count only for the user who made them: no user may influence the sets of others. Most of
 * the set of a helper is what other programs read while it ran, so that an estimate would be too
 * high. Without a recorded start, the set of a helper is therefore off. Returns 0 or -ENOMEM. */
static int choose_policy(const Planning *p, uint32_t uid, const PlanParameters *parameters,
                         const ModelLaunch *l, const Prediction *in_memory, bool harmful,
                         PackContent *c)
{
    const LaunchHistory *h = &p->launches;
    usec_t ready = 0;

    c->policy = harmful ? POLICY_OFF : POLICY_CONCURRENT;
    c->reason = harmful ? POLICY_REASON_HARMFUL : POLICY_REASON_CONFIGURED;
    if (harmful || p->c->config.launch_replay != LAUNCH_MODE_AUTO)
        return 0;
    if (uid != UID_INVALID)
        ready = launch_benefits_unreplayed_usec(&h->records, l->path, uid);
    if (l->helper && ready == 0) {
        c->policy = POLICY_OFF;
        c->reason = POLICY_REASON_NO_GAIN;
        return 0;
    }
    return plan_predict_start(&p->volumes, parameters, in_memory, ready, c);
}

/* Compiles the pack of a start. Its ranges are read in bins of first use, and in physical order
 * within a bin, if a device seeks slowly. They are read in order of first use if none does. */
static int compile(Planning *p, uint32_t uid, const char *name, const ModelLaunch *l,
                   const Prediction *prediction, const Prediction *in_memory,
                   const Benefit *benefit, void **ret, size_t *ret_size)
{
    usec_t now = clock_now(CLOCK_REALTIME);
    const PlanParameters parameters = {
            .budget_bytes = p->budget_bytes,
            .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
            .min_probability = LAUNCH_PROBABILITY_MIN,
            .isolated_probability = LAUNCH_ISOLATED_PROBABILITY,
            .control_interval = control_interval(p, l, benefit, now),
            .salt = planning_choose_salt(p, name),
            .now_realtime = now,
            .volatile_since = model_wall_clock(p->model) -
                              MIN(model_wall_clock(p->model), PLAN_VOLATILE_USEC),
            .no_gaps = true, /* most is resident: the session has read what applications share */
            .device_class = _DEVICE_CLASS_INVALID,
    };
    usec_t observed = launch_benefits_observed_until(&p->launches.records, l->path, uid, now);
    _cleanup_located_plan_ LocatedPlan *located = NULL;
    _cleanup_pack_content_ PackContent *content = NULL;
    int r;

    r = plan_locate(prediction, p->root, &p->volumes, uid == UID_INVALID ? OWNERSHIP_ANYBODY : uid,
                    MIN(model_wall_clock(p->model), observed), &located);
    if (r >= 0)
        r = plan_compile(located, &parameters, &content, NULL);
    if (r < 0)
        return r;
    content->bin_usec = bins_choose_width(content);
    if (content->bin_usec > 0)
        r = bins_gather(&p->volumes, &parameters, in_memory, content);
    if (r < 0)
        return r;
    r = choose_policy(p, uid, &parameters, l, in_memory, benefit_is_harmful(benefit, uid), content);
    if (r < 0)
        return r;
    return pack_write(content, ret, ret_size);
}

static int note_written(Written *w, uint32_t uid, uint64_t hash)
{
    int r = grow_array(&w->packs, &w->allocated, w->n + 1, sizeof(*w->packs));

    if (r < 0)
        return r;
    w->packs[w->n].uid = uid;
    w->packs[w->n++].hash = hash;
    return 0;
}

/* Makes the pack of one application. If the pack cannot be made, the old one stays. Returns 0,
 * or an error that was reported and holds for all packs. */
static int make_pack(Planning *p, const Model *sum, const Prediction *in_memory, uint32_t uid,
                     const ModelLaunch *l, Written *w)
{
    _cleanup_prediction_ Prediction *prediction = NULL;
    char name[LAUNCH_PACK_NAME_MAX];
    uint64_t hash = launch_pack_hash(l->path);
    Benefit benefit = launch_benefits_find(&p->launches.benefits, l->path);
    _cleanup_free_ void *bytes = NULL;
    size_t size = 0;
    int r;

    launch_pack_name(name, uid, hash);
    r = model_predict_launch(sum, l->application, &prediction);
    if (r >= 0) {
        prediction_remove_files(prediction, cycle_excludes, p->c->config.exclude);
        prediction_keep_likeliest(prediction, LAUNCH_FILES_MAX);
        r = compile(p, uid, name, l, prediction, in_memory, &benefit, &bytes, &size);
    }
    if (r >= 0 && size > LAUNCH_PACK_SIZE_MAX)
        r = -E2BIG;
    if (r >= 0)
        r = packs_write(p->state_fd, name, bytes, size);
    if (r < 0)
        cli_warning(r, "cannot plan the start of %s, ignoring: %m", l->path);
    if (r == -ENOSPC || r == -EDQUOT || r == -EROFS)
        return r;
    r = note_written(w, uid, hash);
    return r < 0 ? cli_error(r, "cannot plan the starts of applications: %m") : 0;
}

/* Predicts what is in memory when an application of the user starts: what the boot and the user's
 * login read. Logins of some users say nothing about the others (`uid` UID_INVALID). Returns 0 or
 * -ENOMEM. */
static int predict_in_memory(const Planning *p, uint32_t uid, Prediction **ret)
{
    _cleanup_prediction_ Prediction *boot = NULL, *login = NULL;
    Prediction nothing = {0};
    int r = model_predict_stage(p->model, STAGE_BOOT, UID_INVALID, &boot);

    if (r >= 0 && uid != UID_INVALID)
        r = model_predict_stage(p->model, STAGE_LOGIN, uid, &login);
    if (r >= 0)
        r = prediction_append(boot, login ? login : &nothing, 0);
    if (r >= 0)
        *ret = TAKE_PTR(boot);
    return r;
}

/* Returns true if root owns the application, so that it may have a set for everybody. Else a user
 * could fill the places of these sets with programs of the own home directory. */
static bool is_for_everybody(const char *root, const MountDirs *dirs, const char *path)
{
    _cleanup_free_ char *below = NULL;
    _cleanup_close_ int fd = -EBADF;
    struct stat st;

    if (asprintf(&below, "%s%s", strcmp(root, "/") == 0 ? "" : root, path) < 0)
        return false;
    fd = mount_dirs_open_path(dirs, below, &st);
    return fd >= 0 && ownership_allows(st.st_uid, st.st_gid, st.st_mode, OWNERSHIP_ANYBODY);
}

/* Makes the packs of one user's applications, or the packs for all users (`uid` UID_INVALID).
 * Returns 0, or an error that was reported. */
static int make_packs(Planning *p, uint32_t uid, Written *w)
{
    const Config *c = &p->c->config;
    _cleanup_model_ Model *sum = NULL;
    _cleanup_prediction_ Prediction *in_memory = NULL;
    _cleanup_free_ ModelLaunch *l = NULL;
    _cleanup_mount_dirs_ MountDirs dirs = {0};
    size_t n = 0, n_made = 0;
    int r;

    r = uid == UID_INVALID ? mount_dirs_read(p->root, NULL, 0, &dirs) : 0;
    if (r >= 0)
        r = model_sum_stages(p->model, 1U << STAGE_SESSION, uid, &sum);
    if (r >= 0)
        r = predict_in_memory(p, uid, &in_memory);
    if (r >= 0)
        r = model_list_launches(sum, LAUNCH_PROBABILITY_MIN, c->min_size_bytes, &l, &n);
    if (r < 0)
        return cli_error(r, "cannot predict starts of applications: %m");
    for (size_t i = 0; r >= 0 && i < n && n_made < LAUNCH_PACKS_MAX; i++) {
        progress_update(&p->progress, p->n_tried * SHARES + i * SHARES / n, p->n_to_try * SHARES);
        if (cycle_excludes(c->exclude, l[i].path) ||
            (uid == UID_INVALID && !is_for_everybody(p->root, &dirs, l[i].path)))
            continue;
        r = make_pack(p, sum, in_memory, uid, &l[i], w);
        n_made++;
    }
    p->n_tried++;
    return r;
}

/* Returns true if `name` is the pack of an application and is not among the packs in `arg`. `arg`
 * is a Written. */
static bool is_other(const void *arg, const char *name)
{
    const Written *w = arg;
    uint64_t hash;
    uint32_t uid;

    if (!launch_pack_parse_name(name, &uid, &hash))
        return false;
    for (size_t i = 0; i < w->n; i++)
        if (w->packs[i].uid == uid && w->packs[i].hash == hash)
            return false;
    return true;
}

int planning_make_launch_packs(Planning *p)
{
    Written w = {0};
    int r = 0;

    if (p->model && p->c->config.launch_replay != LAUNCH_MODE_NO) {
        p->n_tried = 0;
        p->n_to_try = 1;
        for (size_t i = 0; i < p->model->n_stages; i++)
            p->n_to_try += p->model->stages[i].stage == STAGE_SESSION &&
                           p->model->stages[i].uid != UID_INVALID;
        r = make_packs(p, UID_INVALID, &w);
        for (size_t i = 0; r >= 0 && i < p->model->n_stages; i++)
            if (p->model->stages[i].stage == STAGE_SESSION &&
                p->model->stages[i].uid != UID_INVALID)
                r = make_packs(p, p->model->stages[i].uid, &w);
    }
    if (r >= 0)
        r = planning_remove_files(p, is_other, &w);
    p->n_launch_packs = w.n;
    free(w.packs);
    return r;
}
