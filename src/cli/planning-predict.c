/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Predicts what the pack of a stage must contain, for `headstart plan`. */

#include "cli/planning.h"

#include "base/clock.h"
#include "base/uid.h"

bool planning_has_autologin(const Planning *p, uint32_t *ret_uid)
{
    return p->model && model_predict_autologin(p->model, ret_uid);
}

/* If the recording of most boots began only when headstartd started, the model lacks what the
 * system manager read before. In this case the function adds the objects of the shipped model.
 * Returns 0 or -ENOMEM. */
static int add_beginning(const Planning *p, Prediction *boot)
{
    _cleanup_prediction_ Prediction *shipped = NULL;
    usec_t ready = boot->ready, stalled = boot->stalled;
    int r;

    if (!p->shipped || !model_boots_are_late(p->model))
        return 0;
    r = model_predict_stage(p->shipped, STAGE_BOOT, UID_INVALID, &shipped);
    if (r >= 0)
        r = prediction_append(boot, shipped, 0);
    boot->ready = ready; /* the times stay those of this machine's boot */
    boot->stalled = stalled;
    return r;
}

/* Returns until when the metadata that the pack needs was observed, on the model's clock. An
 * upgrade after this moment has moved inodes and directories. */
static usec_t observed_until(const Planning *p, Stage stage, uint32_t uid)
{
    usec_t observed =
            history_observed_until(&p->benefits.history, stage, uid, clock_now(CLOCK_REALTIME));

    return MIN(observed, model_wall_clock(p->model));
}

/* As planning_predict(), without the login that follows a boot. */
static int predict(const Planning *p, Stage stage, uint32_t uid, Prediction **ret,
                   usec_t *ret_learned_until, usec_t *ret_observed_until)
{
    int r;

    if (p->model) {
        r = model_predict_stage(p->model, stage, uid, ret);
        if (r >= 0 && stage == STAGE_BOOT && (*ret)->n_files > 0)
            r = add_beginning(p, *ret);
        *ret_learned_until = model_wall_clock(p->model);
        *ret_observed_until = observed_until(p, stage, uid);
        if (r < 0 || (*ret)->n_files > 0 || uid != UID_INVALID || !p->shipped)
            return r;
        *ret = prediction_free(*ret);
    }
    *ret_learned_until = *ret_observed_until = clock_now(CLOCK_REALTIME);
    return model_predict_stage(p->shipped, stage, uid, ret);
}

/* If most logins are automatic logins of one user, adds the objects of this user's login to those
 * of the boot: no user types at a greeter in between, so one sweep can serve both stages. Lowers
 * *observed to the time of the login. Returns 0 or -ENOMEM. */
static int add_autologin(const Planning *p, Prediction *boot, usec_t *observed)
{
    _cleanup_prediction_ Prediction *login = NULL;
    uint32_t uid;
    int r;

    if (!planning_has_autologin(p, &uid))
        return 0;
    r = model_predict_stage(p->model, STAGE_LOGIN, uid, &login);
    *observed = MIN(*observed, observed_until(p, STAGE_LOGIN, uid));
    return r < 0 ? r : prediction_append(boot, login, boot->horizon);
}

int planning_predict(const Planning *p, Stage stage, uint32_t uid, Prediction **ret,
                     usec_t *ret_learned_until, usec_t *ret_observed_until)
{
    _cleanup_prediction_ Prediction *prediction = NULL;
    int r = predict(p, stage, uid, &prediction, ret_learned_until, ret_observed_until);

    if (r >= 0 && stage == STAGE_BOOT && prediction->n_files > 0)
        r = add_autologin(p, prediction, ret_observed_until);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(prediction);
    return 0;
}
