/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart plan: STATE/model.json -> STATE/boot.pack, STATE/login.pack,
 * STATE/login@UID.pack. Long, because what is planned, for whom, and what is printed of it are
 * decided together; where, how and at what cost are apart (plan/, policy.c, planned.c). */

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/directory.h"
#include "base/ownership.h"
#include "base/parse.h"
#include "base/rooted.h"
#include "cli/capability.h"
#include "cli/early.h"
#include "cli/models.h"
#include "cli/planned.h"
#include "cli/policy.h"
#include "cli/state.h"
#include "pack/pack-writer.h"
#include "plan/plan.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/random.h>

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
        {OPTION_STAGE, 0, "stage", "STAGE", "Only boot or only login"},
        {OPTION_USER, 0, "user", "USER", "Only the login of this user"},
        {OPTION_BUDGET, 0, "budget", "BYTES", "Memory a pack may fill: auto, thesis or bytes"},
        {OPTION_POLICY, 0, "policy", "POLICY", "auto, off, metadata, concurrent, gate or idle"},
        {OPTION_DEADLINE, 0, "deadline", "TIME", "So long a gated boot waits at most"},
        {OPTION_MIN_PROBABILITY, 0, "min-probability", "PERCENT",
         "Leave out what is less likely [10%]"},
        {OPTION_DRY_RUN, 0, "dry-run", NULL, "Print what would be replayed, write nothing"},
        {OPTION_IF_CHANGED, 0, "if-changed", NULL,
         "Do nothing if what is planned from is older than the packs"},
        {0},
};

typedef struct Planning {
    const Context *c;
    int state_fd;
    Model *model, *shipped; /* either may be NULL; the second for stages of which the first knows
                               nothing */
    VolumeTable volumes;
    char root[PATH_MAX]; /* resolved */
    uint64_t budget_bytes;
    const char *policy; /* --policy, or NULL */
    usec_t deadline;
    double min_probability;
    bool dry_run;
    Table *summaries;
    json_object *operations; /* --dry-run --json: one array a stage */
} Planning;

static void planning_done(Planning *p)
{
    if (p->state_fd >= 0)
        close(p->state_fd);
    model_free(p->model);
    model_free(p->shipped);
    volume_table_done(&p->volumes);
    table_free(p->summaries);
    json_object_put(p->operations);
}

/* --- parameters ------------------------------------------------------------------------------- */

static int read_budget(Planning *p, const Config *config)
{
    BudgetParameters b = BUDGET_PARAMETERS_DEFAULT;
    _cleanup_free_ char *text = NULL;
    MemoryFacts facts;
    int r;

    r = rooted_read(AT_FDCWD, "/proc/meminfo", 1U << 16, &text, NULL);
    if (r >= 0)
        r = memory_facts_parse(text, &facts);
    if (r < 0)
        return cli_error(r, "/proc/meminfo: %m");
    b.formula = config->budget == CONFIG_BUDGET_THESIS  ? BUDGET_THESIS
                : config->budget == CONFIG_BUDGET_BYTES ? BUDGET_FIXED
                                                        : BUDGET_AVAILABLE;
    b.fixed_bytes = config->budget_bytes;
    b.total_percent = config->mem_total_percent;
    b.free_percent = config->mem_free_percent;
    b.cached_percent = config->mem_cached_percent;
    p->budget_bytes = budget_bytes(&facts, &b);
    return 0;
}

static int choose_policy(Planning *p, Stage stage, Policy *ret)
{
    Policy policy = stage == STAGE_BOOT ? p->c->config.boot_policy : p->c->config.login_policy;

    if (p->policy && config_parse_policy(p->policy, stage, &policy) < 0)
        return cli_usage_error(p->c, "policy '%s' is not for %s", p->policy,
                               stage_to_string(stage));
    *ret = policy < 0 ? policy_automatic(&p->volumes, stage) : policy;
    return 0;
}

/* The salt of the pack that is replaced, so that control sessions come as evenly as they did; a new
 * one for the first pack. */
static uint64_t choose_salt(const Planning *p, const char *name)
{
    uint64_t salt = 0;
    bool seeks_slowly;

    if (planned_read(p->state_fd, name, &salt, &seeks_slowly) >= 0)
        return salt;
    if (getrandom(&salt, sizeof(salt), GRND_NONBLOCK) != sizeof(salt))
        salt = clock_now(CLOCK_REALTIME);
    return salt;
}

/* --- output ----------------------------------------------------------------------------------- */

static Table *new_summaries(void)
{
    static const Column columns[] = {
            {"STAGE", "stage", CELL_STRING},       {"USER", "uid", CELL_COUNT},
            {"POLICY", "policy", CELL_STRING},     {"FILES", "n_files", CELL_COUNT},
            {"DIRS", "n_directories", CELL_COUNT}, {"RANGES", "n_data", CELL_COUNT},
            {"DATA", "data_bytes", CELL_BYTES},    {"METADATA", "metadata_bytes", CELL_BYTES},
            {"GAPS", "gap_bytes", CELL_BYTES},     {"TAKES", "estimated_usec", CELL_TIMESPAN},
            {"SKIPPED", "skipped", CELL_STRING},   {0},
    };

    return table_new(columns);
}

/* "3 gone, 12 duplicate" */
static void skipped_text(const PlanSummary *s, char *buf, size_t size)
{
    size_t n = 0;

    buf[0] = 0;
    for (PlanSkip k = 0; k < _PLAN_SKIP_MAX && n < size; k++)
        if (s->n_skipped[k] > 0)
            n += (size_t)snprintf(buf + n, size - n, "%s%llu %s", n ? ", " : "",
                                  (unsigned long long)s->n_skipped[k], plan_skip_to_string(k));
}

static void add_summary(Planning *p, Stage stage, uint32_t uid, Policy policy, const PlanSummary *s)
{
    char skipped[256];

    skipped_text(s, skipped, sizeof(skipped));
    table_row(p->summaries, stage_to_string(stage),
              uid == UID_INVALID ? COUNT_UNKNOWN : (uint64_t)uid, policy_to_string(policy),
              s->n_files, s->n_directories, s->n_data_ranges, s->data_bytes, s->metadata_bytes,
              s->gap_bytes, s->estimated_usec, *skipped ? skipped : NULL);
}

/* What replay would do, in its order. */
static Table *operation_table(const PackContent *content)
{
    static const Column columns[] = {
            {"OPERATION", "operation", CELL_STRING},
            {"PLACE", "physical", CELL_COUNT},
            {"OFFSET", "offset", CELL_COUNT},
            {"LENGTH", "length", CELL_COUNT},
            {"LIKELY", "probability", CELL_PROBABILITY},
            {"MOUNT", "mountpoint", CELL_STRING},
            {"PATH", "path", CELL_PATH},
            {0},
    };
    Table *t = table_new(columns);

    for (size_t i = 0; i < content->n_volumes; i++) {
        const PackContentVolume *g = content->volumes + i;

        for (size_t k = 0; k < g->n_metadata; k++)
            table_row(t, "metadata", g->metadata[k].offset, g->metadata[k].offset,
                      g->metadata[k].length, g->metadata[k].probability, g->mountpoint, NULL);
        for (size_t k = 0; k < g->n_files; k++)
            table_row(t, "open", COUNT_UNKNOWN, COUNT_UNKNOWN, COUNT_UNKNOWN,
                      g->files[k].probability, g->mountpoint, g->files[k].path);
        for (size_t k = 0; k < g->n_data; k++) {
            const PackContentData *d = g->data + k;

            table_row(t, "read", d->physical, d->offset, d->length, d->probability, g->mountpoint,
                      g->files[d->file].path);
        }
    }
    return t;
}

static int print_operations(Planning *p, const char *what, const PackContent *content)
{
    _cleanup_table_ Table *t = operation_table(content);
    int r = 0;

    if (p->c->json != JSON_OFF)
        json_object_object_add(p->operations, what, table_to_json(t));
    else {
        printf("%s:\n", what);
        r = table_print(t);
        putchar('\n');
    }
    return r < 0 ? cli_error(r, "cannot print: %m") : 0;
}

static int print_summaries(Planning *p)
{
    static const Column columns[] = {
            {NULL, "budget_bytes", CELL_BYTES},
            {NULL, "stages", CELL_TABLE},
            {0},
    };
    _cleanup_table_ Table *t = NULL;

    if (p->c->json == JSON_OFF)
        return p->c->quiet ? 0 : cli_print(p->c, p->summaries);
    t = table_new(columns);
    if (p->dry_run)
        table_column(t, NULL, "operations", CELL_JSON);
    table_row(t, p->budget_bytes, TAKE_PTR(p->summaries),
              p->dry_run ? TAKE_PTR(p->operations) : NULL);
    return cli_print_fields(p->c, t);
}

/* --- one stage -------------------------------------------------------------------------------- */

/* From what this machine has learned; where that is nothing, from what the distribution ships.
 * *ret_learned_until: of the former the last session, of the latter now. 0 or -ENOMEM. */
static int predict(const Planning *p, Stage stage, uint32_t uid, Prediction **ret,
                   usec_t *ret_learned_until)
{
    int r;

    if (p->model) {
        r = model_predict_stage(p->model, stage, uid, ret);
        *ret_learned_until = p->model->clock;
        if (r < 0 || (*ret)->n_files > 0 || uid != UID_INVALID || !p->shipped)
            return r;
        prediction_free(*ret);
    }
    *ret_learned_until = clock_now(CLOCK_REALTIME);
    return model_predict_stage(p->shipped, stage, uid, ret);
}

/* 1: planned, 0: nothing is known of the stage, or of that user's (UID_INVALID: of whoever it will
 * be). */
static int plan_stage(Planning *p, Stage stage, uint32_t uid)
{
    char what[32], name[40];
    _cleanup_pack_content_ PackContent *content = NULL;
    _cleanup_located_plan_ LocatedPlan *located = NULL;
    _cleanup_prediction_ Prediction *prediction = NULL;
    _cleanup_free_ void *bytes = NULL;
    PlanSummary summary = {0};
    usec_t learned_until;
    PlanParameters parameters = {
            .budget_bytes = p->budget_bytes,
            .min_probability = p->min_probability,
            .deadline_usec = p->deadline,
            .control_interval = p->c->config.control_interval,
            .now_realtime = clock_now(CLOCK_REALTIME),
            .device_class = _DEVICE_CLASS_INVALID,
    };
    size_t size;
    int r;

    if (uid == UID_INVALID)
        snprintf(what, sizeof(what), "%s", stage_to_string(stage));
    else
        snprintf(what, sizeof(what), "%s@%" PRIu32, stage_to_string(stage), uid);
    snprintf(name, sizeof(name), "%s.pack", what);
    parameters.salt = choose_salt(p, name);
    r = choose_policy(p, stage, &parameters.policy);
    if (r < 0)
        return r;
    r = predict(p, stage, uid, &prediction, &learned_until);
    if (r < 0)
        return cli_error(r, "cannot predict %s: %m", what);
    if (prediction->n_files == 0)
        return 0;
    parameters.volatile_since = learned_until - MIN(learned_until, PLAN_VOLATILE_USEC);
    r = plan_locate(prediction, p->root, &p->volumes,
                    stage == STAGE_BOOT  ? OWNERSHIP_SYSTEM
                    : uid == UID_INVALID ? OWNERSHIP_ANYBODY
                                         : uid,
                    learned_until, &located);
    if (r < 0)
        return cli_error(r, "%s: %m", p->c->root);
    r = plan_compile(located, &parameters, &content, &summary);
    if (r >= 0)
        r = pack_write(content, &bytes, &size);
    if (r < 0)
        return cli_error(r, "cannot plan %s: %m", what);

    add_summary(p, stage, uid, parameters.policy, &summary);
    if (summary.n_skipped[PLAN_SKIP_DENIED] > 0 && !capability_have(CAP_DAC_READ_SEARCH))
        cli_warning(0, "%llu files may not be opened: CAP_DAC_READ_SEARCH is missing",
                    (unsigned long long)summary.n_skipped[PLAN_SKIP_DENIED]);
    if (p->dry_run)
        r = print_operations(p, what, content);
    else {
        r = atomic_file_write(p->state_fd, name, bytes, size, 0600);
        if (r < 0)
            cli_error(r, "%s/%s: %m", p->c->state, name);
        else if (stage == STAGE_BOOT)
            (void)early_pack_update(p->c, p->state_fd, bytes, size); /* said; all else goes on */
    }
    return r < 0 ? r : 1;
}

/* Each user whose login was learned: the pack that is replayed once it is known who it is. The
 * number of packs, or an error. */
static int plan_users(Planning *p, uint32_t only)
{
    int r = 0, n = 0;

    for (size_t i = 0; r >= 0 && p->model && i < p->model->n_stages; i++) {
        const ModelStage *s = &p->model->stages[i];

        if (s->stage != STAGE_LOGIN || s->uid == UID_INVALID ||
            (only != UID_INVALID && s->uid != only))
            continue;
        r = plan_stage(p, STAGE_LOGIN, s->uid);
        n += r > 0;
    }
    return r < 0 ? r : n;
}

/* Packs of users of whom the model knows no login any more: it has faded, or was forgotten. */
static int drop_stale_packs(const Planning *p)
{
    _cleanup_closedir_ DIR *dir = NULL;
    const struct dirent *e;
    int r = directory_open(p->state_fd, ".", 0, &dir);

    if (r < 0)
        return cli_error(r, "%s: %m", p->c->state);
    while ((e = directory_next(dir))) {
        char name[40];
        bool known = false;
        uint32_t uid;

        if (sscanf(e->d_name, "login@%" SCNu32, &uid) != 1)
            continue;
        snprintf(name, sizeof(name), "login@%" PRIu32 ".pack", uid);
        for (size_t i = 0; p->model && i < p->model->n_stages; i++)
            known = known ||
                    (p->model->stages[i].stage == STAGE_LOGIN && p->model->stages[i].uid == uid);
        if (!known && strcmp(name, e->d_name) == 0 && unlinkat(p->state_fd, name, 0) < 0)
            cli_warning(errno, "%s/%s: cannot remove it: %m", p->c->state, name);
    }
    return 0;
}

static int load(Planning *p)
{
    _cleanup_free_ char *error = NULL;
    int r;

    r = models_load_default(p->c, &p->shipped);
    if (r < 0)
        return cli_error(r, "%m");
    r = state_open(p->c, p->shipped && !p->dry_run, &p->state_fd);
    if (r == -ENOENT && !p->shipped)
        return cli_error(r, "%s: nothing was recorded yet", p->c->state);
    if (r >= 0)
        r = state_lock(p->c, p->state_fd);
    if (r < 0 && r != -ENOENT)
        return r;
    r = r >= 0 ? state_load_model(p->state_fd, &p->model, &error) : r;
    if (r == -ENOENT && !p->shipped)
        return cli_error(r, "%s/" STATE_MODEL ": nothing was learned yet (headstart learn)",
                         p->c->state);
    if (r < 0 && r != -ENOENT)
        return cli_error(r, "%s/" STATE_MODEL ": %s", p->c->state, error ? error : strerror(-r));

    if (!realpath(p->c->root, p->root))
        return cli_error(errno, "%s: %m", p->c->root);
    r = volume_table_read(AT_FDCWD, p->root, &p->volumes);
    if (r < 0)
        return cli_error(r, "cannot tell what is mounted: %m");
    /* A distribution's default has nothing to do there; who has learned something wants to know. */
    if (p->volumes.n == 0 && !p->model)
        return 0;
    if (p->volumes.n == 0)
        return cli_error(ENODEV, "%s: no filesystem on a local block device is mounted at or below",
                         p->c->root);
    return 0;
}

static int run(Context *c)
{
    _cleanup_(planning_done) Planning p = {
            .c = c,
            .state_fd = -EBADF,
            .deadline = c->config.deadline,
            .min_probability = PLAN_MIN_PROBABILITY_DEFAULT,
    };
    Config config = c->config;
    Stage only = _STAGE_INVALID;
    uint32_t user = UID_INVALID;
    const char *value;
    int k, r, percent, planned = 0;
    bool if_changed = false;
    Policy policy;

    while ((k = cli_next_option(c, &value)) > 0)
        switch (k) {
        case OPTION_STAGE:
            r = cli_parse_stage(c, value, &only);
            if (r < 0)
                return r;
            if (!state_pack_name(only))
                return cli_usage_error(c, "--stage=%s: only boot and login are planned", value);
            break;
        case OPTION_USER:
            r = cli_parse_uid(c, value, &user);
            if (r < 0)
                return r;
            break;
        case OPTION_BUDGET:
            if (config_parse_budget(value, &config.budget, &config.budget_bytes) < 0)
                return cli_usage_error(c, "--budget=%s: neither auto, thesis nor a number of bytes",
                                       value);
            break;
        case OPTION_POLICY:
            if (config_parse_policy(value, STAGE_BOOT, &policy) < 0)
                return cli_usage_error(c, "no such policy: '%s'", value);
            p.policy = value;
            break;
        case OPTION_DEADLINE:
            if (parse_timespan(value, &p.deadline) < 0 || p.deadline > CONFIG_DEADLINE_MAX)
                return cli_usage_error(c, "--deadline=%s: not a time span of at most 60s", value);
            break;
        case OPTION_MIN_PROBABILITY:
            if (parse_percent(value, &percent) < 0 || percent < 0)
                return cli_usage_error(c, "--min-probability=%s: not a percentage", value);
            p.min_probability = percent / 100.0;
            break;
        case OPTION_DRY_RUN:
            p.dry_run = true;
            break;
        case OPTION_IF_CHANGED:
            if_changed = true;
            break;
        }
    if (k < 0)
        return k;
    if (user != UID_INVALID && only == STAGE_BOOT)
        return cli_usage_error(c, "--user= is for logins only");

    if (if_changed && planned_is_current(c))
        return 0;
    p.summaries = new_summaries();
    p.operations = json_object_new_object();
    r = load(&p);
    if (r >= 0)
        r = read_budget(&p, &config);
    if (r >= 0 && user == UID_INVALID && only != STAGE_LOGIN) {
        uint64_t salt;
        bool before = false;

        (void)planned_read(p.state_fd, state_pack_name(STAGE_BOOT), &salt, &before);
        policy_measure_seeks(&p.volumes, before, !p.policy && config.boot_policy < 0);
    }
    for (Stage s = 0; r >= 0 && user == UID_INVALID && s < _STAGE_MAX; s++) {
        if (!state_pack_name(s) || (only >= 0 && s != only))
            continue;
        r = plan_stage(&p, s, UID_INVALID);
        planned += r > 0;
    }
    if (r >= 0 && only < 0 && user == UID_INVALID && !p.dry_run)
        r = drop_stale_packs(&p);
    if (r >= 0 && only != STAGE_BOOT) {
        r = plan_users(&p, user);
        planned += r > 0 ? r : 0;
    }
    if (r < 0)
        return r;
    if (planned == 0)
        return cli_error(ENODATA, "nothing was learned of %s yet",
                         user != UID_INVALID ? "a login of this user"
                         : only >= 0         ? stage_to_string(only)
                                             : "boot or login");
    return print_summaries(&p);
}

const Verb verb_plan = {
        .name = "plan",
        .arguments = "",
        .summary = "Plan what the next boot and login need",
        .description =
                "Writes boot.pack, login.pack and a login@UID.pack for each user whose login was\n"
                "learned into the state directory. If that fails the old ones stay.",
        .options = options,
        .run = run,
};
