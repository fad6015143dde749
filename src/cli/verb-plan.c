/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart plan: makes STATE/boot.pack, STATE/login.pack, STATE/login@UID.pack and the packs of
 * the launch sets from STATE/model.json. */

#include "base/clock.h"
#include "base/parse.h"
#include "cli/planning.h"
#include "command/cli-state.h"
#include "state/idle-boot.h"
#include "state/packs.h"
#include "view/devices.h"

#include <inttypes.h>
#include <string.h>

enum {
    OPTION_STAGE = 1,
    OPTION_USER,
    OPTION_BUDGET,
    OPTION_POLICY,
    OPTION_DEADLINE,
    OPTION_MIN_PROBABILITY,
    OPTION_DRY_RUN,
    OPTION_IF_CHANGED,
};

static const Option options[] = {
        {OPTION_STAGE, 0, "stage", "STAGE", "Plan only boot or only login"},
        {OPTION_USER, 0, "user", "USER", "Plan only the login of this user"},
        {OPTION_BUDGET, 0, "budget", "BYTES",
         "Maximum size of a pack in memory: auto, thesis or\na number of bytes"},
        {OPTION_POLICY, 0, "policy", "POLICY",
         "How the packs are replayed: auto, off, metadata,\nconcurrent, gate or idle"},
        {OPTION_DEADLINE, 0, "deadline", "TIME", "Maximum time for which a gated boot waits"},
        {OPTION_MIN_PROBABILITY, 0, "min-probability", "PERCENT",
         "Minimum probability of an object [10%]"},
        {OPTION_DRY_RUN, 0, "dry-run", NULL, "Print the operations, write nothing"},
        {OPTION_IF_CHANGED, 0, "if-changed", NULL,
         "Do nothing if the packs are newer than the models\nand the configuration"},
        {0},
};

/* What the options request. */
typedef struct Request {
    Stage only;    /* _STAGE_INVALID: both */
    uint32_t user; /* UID_INVALID: all */
    Config config; /* with the changes by options */
    bool if_changed;
} Request;

/* Returns true for the login pack of a user whose logins the model no longer contains: the sums of
 * these logins have decayed to zero, or the logins were deleted. `arg` is a Planning. */
static bool is_stale(const void *arg, const char *name)
{
    const Planning *p = arg;
    uint32_t uid;

    if (!packs_parse_user_name(name, &uid))
        return false;
    for (size_t i = 0; p->model && i < p->model->n_stages; i++)
        if (p->model->stages[i].stage == STAGE_LOGIN && p->model->stages[i].uid == uid)
            return false;
    return true;
}

/* Makes one pack. If planning fails for one user or stage, the others still get their packs. If no
 * file can be written at all, the error is returned, so that it is reported only once. Returns 0,
 * or an error that was reported and holds for all packs. */
static int make_pack(Planning *p, Stage stage, uint32_t uid)
{
    int r;

    progress_update(&p->progress, p->n_tried++, p->n_to_try);
    r = planning_make_pack(p, stage, uid);
    if (r == -ENOSPC || r == -EDQUOT || r == -EROFS)
        return r;
    p->n_planned += r > 0;
    p->n_failed += r < 0;
    return 0;
}

/* Plans a pack for each user whose login was learned. Such a pack is replayed as soon as it is
 * known that this user logs in. */
static int make_user_packs(Planning *p, uint32_t only)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && p->model && i < p->model->n_stages; i++) {
        const ModelStage *s = &p->model->stages[i];

        if (s->stage == STAGE_LOGIN && s->uid != UID_INVALID &&
            (only == UID_INVALID || s->uid == only))
            r = make_pack(p, STAGE_LOGIN, s->uid);
    }
    return r;
}

static int parse_option(Context *c, Planning *p, Request *q, int option, const char *value)
{
    Policy policy;
    int percent, r;

    switch (option) {
    case OPTION_STAGE:
        r = cli_parse_stage(c, value, &q->only);
        if (r < 0)
            return r;
        if (!state_pack_name(q->only))
            return cli_usage_error(c, "--stage=%s: only boot and login are planned", value);
        break;
    case OPTION_USER:
        return cli_parse_uid(c, value, &q->user);
    case OPTION_BUDGET:
        if (config_parse_budget(value, &q->config.budget) < 0)
            return cli_usage_error(c, "--budget=%s: neither auto, thesis nor a number of bytes",
                                   value);
        break;
    case OPTION_POLICY:
        if (config_parse_policy(value, STAGE_BOOT, &policy) < 0)
            return cli_usage_error(c, "no such policy: '%s'", value);
        p->policy = value;
        break;
    case OPTION_DEADLINE:
        if (parse_timespan(value, &p->deadline) < 0 || p->deadline > CONFIG_DEADLINE_MAX)
            return cli_usage_error(c, "--deadline=%s: not a time span of at most 60s", value);
        break;
    case OPTION_MIN_PROBABILITY:
        if (parse_percent(value, &percent) < 0 || percent < 0)
            return cli_usage_error(c, "--min-probability=%s: not a percentage", value);
        p->min_probability = percent / 100.0;
        break;
    case OPTION_DRY_RUN:
        p->dry_run = true;
        break;
    case OPTION_IF_CHANGED:
        q->if_changed = true;
        break;
    }
    return 0;
}

static bool includes_stage(const Request *q, Stage stage)
{
    return state_pack_name(stage) && (q->only < 0 || stage == q->only);
}

static int parse_options(Context *c, Planning *p, Request *q)
{
    const char *value;
    Policy policy;
    int k, r;

    while ((k = cli_next_option(c, &value)) > 0) {
        r = parse_option(c, p, q, k, value);
        if (r < 0)
            return r;
    }
    if (k < 0)
        return k;
    if (q->user != UID_INVALID && q->only == STAGE_BOOT)
        return cli_usage_error(c, "--user= is for logins only");
    for (Stage s = 0; p->policy && s < _STAGE_MAX; s++)
        if (includes_stage(q, s) && !(s == STAGE_BOOT && q->user != UID_INVALID) &&
            config_parse_policy(p->policy, s, &policy) < 0)
            return cli_usage_error(c, "policy '%s' is not for %s", p->policy, stage_to_string(s));
    return 0;
}

/* Returns true if a plan would change nothing: the packs are newer than what they are made from,
 * and the time without recordings of boots has not expired. */
static bool is_current(const Context *c)
{
    _cleanup_close_ int fd = -EBADF;
    usec_t now = clock_now(CLOCK_REALTIME);

    return cli_state_open(c, false, &fd) >= 0 &&
           packs_are_current(fd, config_changed_nsec(c->system_fd), now * NSEC_PER_USEC, c->root) &&
           !idle_boot_has_expired(fd, now);
}

/* Makes the requested packs. If all packs are requested, removes the packs of users and
 * applications for which no pack is planned any more. */
static int make_packs(Planning *p, const Request *q)
{
    bool everyone = q->user == UID_INVALID;
    int r = 0;

    p->n_to_try = 2;
    for (size_t i = 0; p->model && i < p->model->n_stages; i++)
        p->n_to_try += p->model->stages[i].stage == STAGE_LOGIN;
    for (Stage s = 0; r >= 0 && everyone && s < _STAGE_MAX; s++)
        if (includes_stage(q, s))
            r = make_pack(p, s, UID_INVALID);
    if (r >= 0 && q->only < 0 && everyone && !p->dry_run)
        r = planning_remove_files(p, is_stale, p);
    if (r >= 0 && q->only != STAGE_BOOT)
        r = make_user_packs(p, q->user);
    return r;
}

static int run(Context *c)
{
    _cleanup_(planning_done) Planning p = {
            .c = c,
            .state_fd = -EBADF,
            .deadline = c->config.deadline_usec,
            .min_probability = PLAN_MIN_PROBABILITY_DEFAULT,
    };
    Request q = {.only = _STAGE_INVALID, .user = UID_INVALID, .config = c->config};
    int r;

    r = parse_options(c, &p, &q);
    if (r < 0)
        return r;
    if (q.if_changed && is_current(c))
        return 0;
    p.summaries = planning_table();
    p.operations = json_object_new_object();
    r = planning_load(&p);
    if (r >= 0)
        r = planning_set_budget(&p, &q.config);
    if (r < 0)
        return r;
    p.progress = progress_start("Measuring the disks", c->quiet);
    devices_load(c, p.state_fd, p.dry_run ? DEVICES_KNOWN : DEVICES_MEASURE, &p.volumes);
    progress_done(&p.progress);
    p.progress = progress_start("Planning", c->quiet);
    r = make_packs(&p, &q);
    progress_done(&p.progress);
    if (r >= 0 && q.only < 0 && q.user == UID_INVALID && !p.dry_run) {
        p.progress = progress_start("Planning starts of applications", c->quiet);
        r = planning_make_launch_packs(&p);
        progress_done(&p.progress);
    }
    if (r < 0)
        return r;
    if (p.n_planned == 0 && p.n_failed == 0 && p.n_launch_packs == 0)
        return cli_error(ENODATA, "nothing was learned of %s yet",
                         q.user != UID_INVALID ? "a login of this user"
                         : q.only >= 0         ? stage_to_string(q.only)
                                               : "boot or login");
    r = planning_print(&p);
    if (r >= 0 && p.n_failed > 0)
        return cli_error(
                0, "%" PRIu64 " of %" PRIu64 " packs were not planned, the old packs are kept",
                p.n_failed, p.n_planned + p.n_failed);
    return r;
}

const Verb verb_plan = {
        .name = "plan",
        .arguments = "",
        .summary = "Plan the packs for the next boot and login",
        .description =
                "Writes boot.pack, login.pack and a login@UID.pack for each user whose login was\n"
                "learned. Without --stage= and --user=, also writes the launch sets of\n"
                "applications. A pack that cannot be planned is left as it was.",
        .options = options,
        .run = run,
};
