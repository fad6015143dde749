/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Plans one pack for `headstart plan`, and loads the inputs of all packs. */

#include "cli/planning.h"

#include "base/clock.h"
#include "base/directory.h"
#include "base/journal.h"
#include "base/log.h"
#include "base/text.h"
#include "boot/last-control.h"
#include "cli/capability.h"
#include "cli/models.h"
#include "command/cli-state.h"
#include "model/ownership.h"
#include "pack/pack-writer.h"
#include "plan/exact-recording.h"
#include "plan/plan-predict.h"
#include "state/idle-boot.h"
#include "state/packs.h"
#include "state/rerecord.h"
#include "view/benefits.h"

#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <syslog.h>
#include <unistd.h>

/* A plan for which memory is short, or that does not fit into a pack, is reduced as long as it has
 * more files than this. */
#define FILES_MIN 64U

void planning_done(Planning *p)
{
    if (p->state_fd >= 0)
        close(p->state_fd);
    model_free(p->model);
    model_free(p->shipped);
    volume_table_done(&p->volumes);
    benefits_done(&p->benefits);
    launch_history_done(&p->launches);
    table_free(p->summaries);
    json_object_put(p->operations);
}

/* Computes how often a control session is needed, and which policies do harm. Returns 0, or an
 * error that was reported. */
static int read_history(Planning *p)
{
    usec_t now = clock_now(CLOCK_REALTIME);
    int r;

    p->benefits.control_interval = p->c->config.control_interval;
    r = p->state_fd < 0 ? 0 : benefits_read(p->c, p->state_fd, now, &p->benefits);
    if (r < 0)
        return r;
    p->boots = history_count_boots(&p->benefits.history, now);
    for (Stage s = 0; s < _STAGE_MAX; s++)
        p->control_intervals[s] = benefits_control_interval(&p->benefits, s, now);
    return launch_history_read(p->c, p->state_fd, now, &p->launches);
}

int planning_load(Planning *p)
{
    _cleanup_free_ char *error = NULL;
    int r;

    r = models_load_default(p->c, &p->shipped);
    if (r < 0)
        return cli_error(r, "%m");
    r = cli_state_open(p->c, p->shipped && !p->dry_run, &p->state_fd);
    if (r == -ENOENT && !p->shipped)
        return cli_error(r, "%s: nothing was recorded yet", p->c->state);
    if (r >= 0)
        r = cli_state_lock(p->c, p->state_fd);
    if (r < 0 && r != -ENOENT)
        return r;
    r = r >= 0 ? state_load_model(p->state_fd, &p->model, &error) : r;
    if (r == -ENOENT && !p->shipped)
        return cli_error(r, "%s/" STATE_MODEL ": nothing was learned yet (headstart learn)",
                         p->c->state);
    if (r < 0 && r != -ENOENT)
        return cli_error(r, "%s/" STATE_MODEL ": %s", p->c->state, error ? error : error_text(r));

    r = read_history(p);
    if (r < 0)
        return r;
    if (!realpath(p->c->root, p->root))
        return cli_error(errno, "%s: %m", p->c->root);
    r = volume_table_read(AT_FDCWD, p->root, &p->volumes);
    if (r < 0)
        return cli_error(r, "cannot read the list of mounts: %m");
    /* A machine without volumes and without a model of its own has nothing to plan, which is no
     * error. */
    if (p->volumes.n == 0 && !p->model)
        return 0;
    if (p->volumes.n == 0)
        return cli_error(ENODEV, "no filesystem on a local block device is mounted at or below %s",
                         p->c->root);
    return 0;
}

int planning_set_budget(Planning *p, const Config *config)
{
    MemoryFacts facts;
    int r = memory_facts_read(AT_FDCWD, &facts);

    if (r < 0)
        return cli_error(r, "/proc/meminfo: %m");
    p->budget_bytes = budget_bytes(&facts, &config->budget);
    return 0;
}

int planning_remove_files(const Planning *p, bool (*unneeded)(const void *arg, const char *name),
                          const void *arg)
{
    _cleanup_closedir_ DIR *dir = NULL;
    const struct dirent *e;
    int r = directory_open(p->state_fd, ".", 0, &dir);

    if (r < 0)
        return cli_error(r, "%s: %m", p->c->state);
    while ((e = directory_next(dir)))
        if (unneeded(arg, e->d_name) && unlinkat(p->state_fd, e->d_name, 0) < 0)
            cli_warning(errno, "%s/%s: cannot remove it: %m", p->c->state, e->d_name);
    return 0;
}

/* Returns the policy that --policy= or the configuration sets, or _POLICY_INVALID. */
static Policy configured_policy(const Planning *p, Stage stage)
{
    Policy policy = stage == STAGE_BOOT ? p->c->config.boot_policy : p->c->config.login_policy;

    if (p->policy) /* the option was checked when it was parsed */
        (void)config_parse_policy(p->policy, stage, &policy);
    return (int)policy < 0 ? _POLICY_INVALID : policy;
}

uint64_t planning_choose_salt(const Planning *p, const char *name)
{
    uint64_t salt = 0;

    if (packs_read_salt(p->state_fd, name, &salt) >= 0)
        return salt;
    if (getrandom(&salt, sizeof(salt), GRND_NONBLOCK) != sizeof(salt))
        salt = clock_now(CLOCK_REALTIME);
    return salt;
}

/* Returns the stage whose history decides about control sessions of this stage. The boot pack of a
 * machine with an automatic login contains the login, so both stages must be control sessions in
 * the same boots. The login decides: it begins before such a boot is ready, and its time contains
 * the boot. */
static Stage drawing_stage(const Planning *p, Stage stage)
{
    uint32_t uid;

    return stage == STAGE_BOOT && planning_has_autologin(p, &uid) ? STAGE_LOGIN : stage;
}

/* Returns the salt of all packs of a stage. The packs of a user and of all users are replayed for
 * the same login, so both must be off in a control session. */
static uint64_t choose_stage_salt(Planning *p, Stage stage)
{
    char name[PACK_NAME_MAX];

    if (!p->salt_known[stage])
        p->salts[stage] = planning_choose_salt(p, packs_name(name, stage, UID_INVALID));
    p->salt_known[stage] = true;
    return p->salts[stage];
}

/* A pack while it is planned. */
typedef struct PackJob {
    Stage stage;
    uint32_t uid;
    char name[PACK_NAME_MAX]; /* of the pack's file */
    char what[PACK_NAME_MAX]; /* the same without suffix: "login", "login@1000" */
    PlanParameters parameters;
    usec_t learned_until, observed_until;
    PackContent *content;
    PlanSummary summary;
    void *bytes;
    size_t size;
    Policy configured; /* _POLICY_INVALID: the planner chooses it */
    Policy old;        /* of the pack that is to be replaced; _POLICY_INVALID: there is none */
} PackJob;

static void pack_job_done(PackJob *j)
{
    pack_content_free(j->content);
    free(j->bytes);
}

/* Returns the policy of the pack that is to be replaced, or _POLICY_INVALID if there is none. */
static Policy old_policy(const Planning *p, const char *name)
{
    _cleanup_free_ char *buf = NULL;
    Pack old;

    if (packs_read(p->state_fd, name, &buf, &old, NULL) < 0)
        return _POLICY_INVALID;
    return (Policy)old.header->policy;
}

static void pack_job_init(Planning *p, Stage stage, uint32_t uid, PackJob *j)
{
    *j = (PackJob){
            .stage = stage,
            .uid = uid,
            .parameters =
                    {
                            .budget_bytes = p->budget_bytes,
                            .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
                            .min_probability = p->min_probability,
                            .deadline_usec = p->deadline,
                            .control_interval = p->control_intervals[drawing_stage(p, stage)],
                            .now_realtime = clock_now(CLOCK_REALTIME),
                            .device_class = _DEVICE_CLASS_INVALID,
                    },
    };
    j->configured = configured_policy(p, stage);
    packs_name(j->name, stage, uid);
    j->old = old_policy(p, j->name);
    snprintf(j->what, sizeof(j->what), "%.*s", (int)strcspn(j->name, "."), j->name);
    j->parameters.salt = choose_stage_salt(p, drawing_stage(p, stage));
}

/* Returns what is known of sessions that were replayed with the pack's policy. The sessions of a
 * machine with an automatic login are boots with their logins. */
static const Benefit *measured_benefit(const Planning *p, const PackJob *j)
{
    Stage drawing = drawing_stage(p, j->stage);

    return &p->benefits.stages[p->benefits.stages[drawing].automatic ? drawing : j->stage];
}

/* Returns why the pack keeps the policy of the pack before instead of the predicted one, or
 * POLICY_REASON_UNKNOWN if it does not. */
static PolicyReason keep_policy(const Planning *p, const PackJob *j)
{
    if ((int)j->old < 0 || j->old == j->content->policy)
        return POLICY_REASON_UNKNOWN;
    return benefit_keeps(measured_benefit(p, j), j->old);
}

/* Chooses the policy. Measured sessions outweigh a prediction. Returns 0 or -ENOMEM. */
static int choose_policy(const Planning *p, PackJob *j, StageMeasured measured)
{
    PackContent *c = j->content;
    PolicyReason keeps;
    int r = plan_predict(&p->volumes, &j->parameters, j->configured, measured, c);

    if (r < 0 || (int)j->configured >= 0)
        return r;
    if (benefit_is_harmful(measured_benefit(p, j), j->uid)) {
        c->policy = POLICY_OFF;
        c->reason = POLICY_REASON_HARMFUL;
        return 0;
    }
    keeps = keep_policy(p, j);
    if (keeps == POLICY_REASON_UNKNOWN)
        return 0;
    r = plan_predict(&p->volumes, &j->parameters, j->old, measured, c);
    c->reason = keeps;
    return r;
}

static int compile(const Planning *p, PackJob *j, const Prediction *prediction)
{
    _cleanup_located_plan_ LocatedPlan *located = NULL;
    int r;

    r = plan_locate(prediction, p->root, &p->volumes,
                    j->stage == STAGE_BOOT  ? OWNERSHIP_SYSTEM
                    : j->uid == UID_INVALID ? OWNERSHIP_ANYBODY
                                            : j->uid,
                    j->observed_until, &located);
    if (r >= 0)
        r = plan_compile(located, &j->parameters, &j->content, &j->summary);
    if (r >= 0)
        r = choose_policy(p, j, (StageMeasured){prediction->ready, prediction->stalled});
    if (r >= 0)
        r = pack_write(j->content, &j->bytes, &j->size);
    if (r < 0)
        j->content = pack_content_free(j->content);
    return r;
}

/* Compiles the predicted objects. If memory is short or the result does not fit into a pack,
 * compiles the likeliest quarter of the files, then a quarter of that quarter, and so on, because a
 * smaller pack is better than none. */
static int compile_what_fits(const Planning *p, PackJob *j, Prediction *prediction)
{
    int r = compile(p, j, prediction);

    while ((r == -ENOMEM || r == -E2BIG) && prediction->n_files > FILES_MIN) {
        cli_warning(r, "cannot plan %s with %zu files, trying with a quarter of them: %m", j->what,
                    prediction->n_files);
        prediction_keep_likeliest(prediction, prediction->n_files / 4);
        r = compile(p, j, prediction);
    }
    return r;
}

/* Sends an entry to the journal if the policy has changed. Prints nothing, because `headstart plan`
 * shows the policy in its table. */
static void log_policy(const PackJob *j)
{
    const PackContent *new = j->content;
    Policy old = j->old;
    char message[256];
    JournalEntry e;

    if ((int)old < 0 || old == new->policy)
        return;
    journal_entry_begin(&e, JOURNAL_POLICY_CHANGED, LOG_NOTICE);
    journal_entry_add(&e, "HEADSTART_PACK", "%s", j->name);
    journal_entry_add(&e, "HEADSTART_POLICY", "%s", policy_to_string(new->policy));
    journal_entry_add(&e, "HEADSTART_OLD_POLICY", "%s", policy_to_string(old));
    journal_entry_add(&e, "HEADSTART_REASON", "%s", policy_reason_to_string(new->reason));
    snprintf(message, sizeof(message), "headstart: %s: the policy changed from %s to %s", j->name,
             policy_to_string(old), policy_to_string(new->policy));
    (void)journal_take(&e, message);
}

/* Requests an exact recording of the next boot if one is due. If the boot pack contains an
 * automatic login, it requests one of that login, too. ControlInterval=0 excludes both as it
 * excludes control sessions, because they are not replayed. Returns 0, or an error that was
 * reported. */
static int request_exact_recording(const Planning *p, const PackJob *j)
{
    Stage drawing = drawing_stage(p, STAGE_BOOT);
    const Effect *effect = &p->benefits.stages[drawing].effect;
    const ExactRecordingFacts facts = {
            .policy = j->content->policy,
            .n_replayed = p->boots.n_replayed,
            .n_replayed_since = p->boots.n_replayed_since,
            .recorded = p->boots.recorded,
            .exact = p->boots.exact,
            .shown = effect->known && effect->saved_low > 0,
            .drawn = p->control_intervals[drawing] > 0,
    };
    char name[RERECORD_NAME_MAX];
    unsigned kb = 0;
    uint32_t uid;
    int r;

    /* An administrator's request stays as it is. */
    if (strcmp(p->root, "/") != 0 || p->c->config.control_interval == 0 ||
        faccessat(p->state_fd, rerecord_name(name, STAGE_BOOT), F_OK, 0) == 0 ||
        !exact_recording_is_due(&facts, clock_now(CLOCK_REALTIME)))
        return 0;
    for (size_t i = 0; i < p->volumes.n; i++)
        if (strcmp(p->volumes.volumes[i].mountpoint, "/") == 0)
            kb = exact_recording_read_ahead(&p->volumes.volumes[i].profile,
                                            p->volumes.volumes[i].read_ahead_kb);
    if (kb == 0)
        return 0;
    r = rerecord_write(p->state_fd, STAGE_BOOT, UID_INVALID, kb);
    if (r >= 0 && planning_has_autologin(p, &uid) &&
        faccessat(p->state_fd, rerecord_name(name, STAGE_LOGIN), F_OK, 0) < 0)
        r = rerecord_write(p->state_fd, STAGE_LOGIN, uid, kb);
    if (r < 0)
        return cli_error(r, "%s: cannot request an exact recording: %m", p->c->state);
    /* Early boot may see the copy of the boot pack but not the request. */
    return cli_state_update_early_pack(p->c, p->state_fd, NULL, 0);
}

static int write_pack(const Planning *p, const PackJob *j)
{
    int r = packs_write(p->state_fd, j->name, j->bytes, j->size), k = 0;

    if (r < 0)
        return cli_error(r, "%s/%s: %m", p->c->state, j->name);
    log_policy(j);
    if (j->stage == STAGE_BOOT) {
        r = idle_boot_set(p->state_fd, idle_boot_is_due(j->content->policy, p->boots.recorded,
                                                        clock_now(CLOCK_REALTIME)));
        k = last_control_remove(p->state_fd);
        /* cli_state_update_early_pack() reports its errors itself. */
        (void)cli_state_update_early_pack(p->c, p->state_fd, j->bytes, j->size);
    }
    if (r < 0)
        return cli_error(r, "%s/" STATE_IDLE_BOOT ": %m", p->c->state);
    if (k < 0)
        return cli_error(k, "%s/" LAST_CONTROL_FILE ": %m", p->c->state);
    return j->stage == STAGE_BOOT ? request_exact_recording(p, j) : 0;
}

int planning_make_pack(Planning *p, Stage stage, uint32_t uid)
{
    _cleanup_prediction_ Prediction *prediction = NULL;
    _cleanup_(pack_job_done) PackJob j;
    int r;

    pack_job_init(p, stage, uid, &j);
    r = planning_predict(p, stage, uid, &prediction, &j.learned_until, &j.observed_until);
    if (r < 0)
        return cli_error(r, "cannot predict %s: %m", j.what);
    if (prediction->n_files == 0)
        return 0;
    j.parameters.volatile_since = j.learned_until - MIN(j.learned_until, PLAN_VOLATILE_USEC);
    r = compile_what_fits(p, &j, prediction);
    if (r < 0)
        return cli_error(r, "cannot plan %s: %m", j.what);

    if (j.summary.n_skipped[PLAN_SKIP_DENIED] > 0 && !capability_have(CAP_DAC_READ_SEARCH))
        cli_warning(0, "%llu file%s cannot be opened: CAP_DAC_READ_SEARCH is missing",
                    (unsigned long long)j.summary.n_skipped[PLAN_SKIP_DENIED],
                    text_plural_s(j.summary.n_skipped[PLAN_SKIP_DENIED]));
    r = p->dry_run ? planning_print_operations(p, j.what, j.content) : write_pack(p, &j);
    if (r < 0)
        return r;
    planning_add_summary(p, uid, j.content, &j.summary);
    return 1;
}
