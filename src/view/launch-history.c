/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/launch-history.h"

#include "base/json-util.h"
#include "state/launch-packs.h"

void launch_history_done(LaunchHistory *h)
{
    launch_benefits_done(&h->benefits);
    launch_records_done(&h->records);
}

int launch_history_compute(LaunchHistory *h, usec_t now)
{
    return launch_benefits_compute(&h->records, now, &h->benefits);
}

/* Computes the rest of what launch_history_read() returns from h->records, and moves *h to *ret.
 * Returns 0 or -ENOMEM. */
static int finish(const Context *c, int state_fd, usec_t now, LaunchHistory *h, LaunchHistory *ret)
{
    PolicyReason off = POLICY_REASON_CONFIGURED;

    CHECK(launch_history_compute(h, now));
    if (c->config.launch_replay != LAUNCH_MODE_NO)
        (void)launch_packs_are_replayed(state_fd, &off);
    h->off = (int)off < 0 ? NULL : policy_reason_to_string(off);
    *ret = *h;
    *h = (LaunchHistory){0};
    return 0;
}

int launch_history_read(const Context *c, int state_fd, usec_t now, LaunchHistory *ret)
{
    _cleanup_launch_history_ LaunchHistory h = {0};
    int r = state_fd < 0 ? 0 : launches_read(state_fd, &h.records);

    if (r < 0)
        return cli_error(r, "%s/" LAUNCHES_FILE ": %m", c->state);
    r = finish(c, state_fd, now, &h, ret);
    return r < 0 ? cli_error(r, "%m") : 0;
}

int launch_history_read_if_possible(const Context *c, int state_fd, usec_t now, LaunchHistory *ret,
                                    bool *ret_readable)
{
    _cleanup_launch_history_ LaunchHistory h = {0};
    int r = launches_read(state_fd, &h.records);

    *ret_readable = r >= 0;
    return r == -ENOMEM ? r : finish(c, state_fd, now, &h, ret);
}

static json_object *application_to_json(const LaunchBenefit *b, const Benefits *stages, usec_t now)
{
    /* A user sees the own starts only, and all users' starts decide. */
    bool hidden = stages->planned_intervals[STAGE_LOGIN] == INTERVAL_HIDDEN;
    _cleanup_json_ json_object *o = json_object_new_object();

    if (!json_add_member(o, "application", json_object_new_string(b->application)) ||
        !effect_add_to_json(o, &b->benefit.effect) ||
        !json_add_member(o, "n_left_out", json_object_new_uint64(b->benefit.n_left_out)) ||
        !json_add_member(o, "harmful", json_object_new_boolean(b->benefit.harmful)) ||
        !json_add_member(o, "control_interval",
                         hidden ? NULL
                                : json_object_new_uint64(benefits_control_interval_of_launch(
                                          stages, &b->benefit, now))))
        return NULL;
    return TAKE_PTR(o);
}

json_object *launch_history_to_json(const LaunchHistory *h, const Benefits *stages, usec_t now)
{
    _cleanup_json_ json_object *o = effect_to_json(&h->benefits.all.effect, h->off);
    _cleanup_json_ json_object *a = json_object_new_array();

    for (size_t i = 0; i < h->benefits.n; i++)
        if (!json_add_item(a, application_to_json(&h->benefits.items[i], stages, now)))
            return NULL;
    if (!json_add_member(o, "n_left_out", json_object_new_uint64(h->benefits.all.n_left_out)) ||
        !json_add_member(o, "applications", TAKE_PTR(a)))
        return NULL;
    return TAKE_PTR(o);
}
