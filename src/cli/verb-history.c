/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart history: shows how long each recorded boot and login took. */

#include "base/clock.h"
#include "base/json-util.h"
#include "base/parse.h"
#include "base/text.h"
#include "command/cli-state.h"
#include "measure/benefit.h"
#include "measure/history.h"
#include "view/launch-history.h"
#include "view/visible.h"

enum {
    OPTION_STAGE = 1,
    OPTION_LIMIT,
    OPTION_LAUNCHES,
};

#define LIMIT_DEFAULT 20

static const Option options[] = {
        {OPTION_STAGE, 0, "stage", "STAGE", "Show only boots or only logins"},
        {OPTION_LAUNCHES, 0, "launches", NULL, "Show starts of applications instead"},
        {OPTION_LIMIT, 'n', "limit", "N", "Show the newest N sessions; 0: all [20]"},
        {0},
};

static const Column columns[] = {
        {"WHEN", "start_realtime_usec", CELL_REALTIME},
        {"STAGE", "stage", CELL_STRING},
        {"UID", "uid", CELL_COUNT},
        {"TOOK", "ready_usec", CELL_TIMESPAN},
        {"REPLAY", "replay", CELL_STRING},
        {NULL, "replay_data_bytes", CELL_BYTES},
        {NULL, "io_some_usec", CELL_TIMESPAN},
        {NULL, "disk_reads", CELL_COUNT},
        {"FROM DISK", "disk_read_bytes", CELL_BYTES},
        {"HITS", "hit_bytes", CELL_BYTES},
        {"WASTE", "waste_bytes", CELL_BYTES},
        {"MISSES", "miss_bytes", CELL_BYTES},
        {"PER", NULL, CELL_STRING},
        {"NOT COMPARED", "left_out", CELL_TEXT},
        {NULL, "boot_id", CELL_STRING},
        {NULL, "flags", CELL_JSON},
        {NULL, "policy", CELL_STRING},
        {NULL, "reason", CELL_STRING},
        {NULL, "outcome", CELL_STRING},
        {NULL, "replayed", CELL_BOOLEAN},
        {NULL, "usage", CELL_STRING},
        {NULL, "hit_files", CELL_COUNT},
        {NULL, "waste_files", CELL_COUNT},
        {NULL, "miss_files", CELL_COUNT},
        {NULL, "firmware_usec", CELL_TIMESPAN},
        {NULL, "loader_usec", CELL_TIMESPAN},
        {NULL, "kernel_usec", CELL_TIMESPAN},
        {NULL, "initrd_usec", CELL_TIMESPAN},
        {NULL, "userspace_usec", CELL_TIMESPAN},
        {NULL, "early_usec", CELL_TIMESPAN},
        {NULL, "finished_usec", CELL_TIMESPAN},
        {NULL, "io_full_usec", CELL_TIMESPAN},
        {NULL, "replay_usec", CELL_TIMESPAN},
        {NULL, "replay_files", CELL_COUNT},
        {NULL, "replay_metadata_bytes", CELL_BYTES},
        {NULL, "predicted_usec", CELL_TIMESPAN},
        {NULL, "memory_bytes", CELL_BYTES},
        {NULL, "packages_usec", CELL_REALTIME},
        {NULL, "kernel", CELL_STRING},
        {NULL, "distribution", CELL_STRING},
        {NULL, "device", CELL_STRING},
        {NULL, "scheduler", CELL_STRING},
        {NULL, "disk", CELL_STRING},
        {0},
};

/* The columns that a narrow terminal does not show (table_set_optional()). PER says how hits and
 * waste were observed. */
static const char *const optional[] = {"FROM DISK", "MISSES", "WASTE", "HITS,PER", "UID", NULL};

/* Returns in one word what replay did. */
static const char *replay_word(const SessionRecord *s)
{
    if (session_was_replayed(s))
        return policy_to_string(s->policy);
    if (s->flags & SESSION_CONTROL)
        return "control";
    return *s->outcome ? s->outcome : "none";
}

static const char *known(const char *s)
{
    return *s ? s : NULL;
}

static void add_row(Table *t, const SessionRecord *s, SessionExclusion e)
{
    const PackUsage *u = &s->usage;

    table_row(t, s->start_realtime_usec, stage_to_string(s->stage),
              s->uid == UID_INVALID ? COUNT_UNKNOWN : (uint64_t)s->uid, s->ready_usec,
              replay_word(s), s->replay_data_bytes, s->io_some_usec, s->disk_reads,
              s->disk_read_bytes, u->hit_bytes, u->waste_bytes, u->miss_bytes,
              usage_source_unit(u->source), session_exclusion_to_string(e), known(s->boot_id),
              session_flags_to_json(s->flags), policy_to_string(s->policy), known(s->reason),
              known(s->outcome), (int)session_was_replayed(s), usage_source_to_string(u->source),
              u->hit_files, u->waste_files, u->miss_files, s->firmware_usec, s->loader_usec,
              s->kernel_usec, s->initrd_usec, session_userspace_usec(s), s->early_usec,
              s->finished_usec, s->io_full_usec, s->replay_usec, s->replay_files,
              s->replay_metadata_bytes, s->predicted_usec, s->memory_bytes, s->packages_usec,
              known(s->kernel), known(s->distribution), known(s->device), known(s->scheduler),
              known(s->disk));
}

static int print(const Context *c, const History *h, Stage only, uint64_t limit)
{
    _cleanup_free_ SessionExclusion *e = calloc(h->n + 1, sizeof(*e));
    _cleanup_table_ Table *t = table_new(columns);
    uint64_t n = 0, skip;

    if (!e || sessions_label(h->sessions, h->n, HISTORY_WINDOW, e) < 0)
        return cli_error(ENOMEM, "%m");
    for (size_t i = 0; i < h->n; i++)
        n += (int)only < 0 || h->sessions[i].stage == only;
    table_set_optional(t, optional);
    skip = limit > 0 && n > limit ? n - limit : 0;
    for (size_t i = 0; i < h->n; i++)
        if (((int)only < 0 || h->sessions[i].stage == only) && (skip == 0 || skip-- == 0))
            add_row(t, &h->sessions[i], e[i]);
    if (c->json == JSON_OFF && table_n_rows(t) == 0) {
        if (!c->quiet)
            puts("No boot or login was recorded yet.");
        return 0;
    }
    return cli_print(c, t);
}

static void warn_bad(const Context *c, const char *file, size_t n)
{
    if (n > 0)
        cli_warning(0, "%s/%s: %zu line%s cannot be used, ignoring", c->state, file, n,
                    text_plural_s(n));
}

/* Prints the starts of applications. */
static int print_launches(const Context *c, const LaunchHistory *h, uint64_t limit)
{
    static const Column launch_columns[] = {
            {"WHEN", "start_realtime_usec", CELL_REALTIME},
            {"UID", "uid", CELL_COUNT},
            {"TOOK", "took_usec", CELL_TIMESPAN},
            {"FILES", "files", CELL_COUNT},
            {"REPLAYED", "replayed", CELL_STRING},
            {"HITS", "hit_bytes", CELL_BYTES},
            {"WASTE", "waste_bytes", CELL_BYTES},
            {"MISSES", "miss_bytes", CELL_BYTES},
            {"PER", NULL, CELL_STRING},
            {"NOT COMPARED", "left_out", CELL_TEXT},
            {"APPLICATION", "application", CELL_PATH},
            {NULL, "boot_id", CELL_STRING},
            {NULL, "packages_usec", CELL_REALTIME},
            {NULL, "kernel", CELL_STRING},
            {NULL, "policy", CELL_STRING},
            {NULL, "usage", CELL_STRING},
            {NULL, "hit_files", CELL_COUNT},
            {NULL, "waste_files", CELL_COUNT},
            {NULL, "miss_files", CELL_COUNT},
            {NULL, "replay_begin_usec", CELL_TIMESPAN},
            {NULL, "replay_end_usec", CELL_TIMESPAN},
            {NULL, "replay_bytes", CELL_BYTES},
            {0},
    };
    static const char *const launch_optional[] = {"MISSES", "WASTE", "HITS,PER",
                                                  "FILES",  "UID",   NULL};
    const LaunchRecords *l = &h->records;
    _cleanup_table_ Table *t = table_new(launch_columns);

    table_set_optional(t, launch_optional);
    warn_bad(c, LAUNCHES_FILE, l->n_bad);
    for (size_t i = limit > 0 && l->n > limit ? l->n - limit : 0; i < l->n; i++) {
        const LaunchRecord *x = &l->items[i];
        const PackUsage *u = &x->usage;
        bool read = x->replay_end_usec > 0;

        table_row(
                t, x->start_realtime_usec, x->uid == UID_INVALID ? COUNT_UNKNOWN : (uint64_t)x->uid,
                x->took_usec, x->files, launch_replayed_to_string(x->replayed), u->hit_bytes,
                u->waste_bytes, u->miss_bytes, usage_source_unit(u->source),
                launch_exclusion_to_string(h->benefits.exclusions[i]), x->application,
                known(x->boot_id), x->packages_usec > 0 ? x->packages_usec : COUNT_UNKNOWN,
                known(x->kernel), policy_to_string(x->policy), usage_source_to_string(u->source),
                u->hit_files, u->waste_files, u->miss_files,
                read ? x->replay_begin_usec : COUNT_UNKNOWN,
                read ? x->replay_end_usec : COUNT_UNKNOWN, read ? x->replay_bytes : COUNT_UNKNOWN);
    }
    if (c->json == JSON_OFF && table_n_rows(t) == 0) {
        if (!c->quiet)
            puts("No start of an application was recorded yet.");
        return 0;
    }
    return cli_print(c, t);
}

/* Shows all starts of applications or, to a user who cannot read the state, the user's own. */
static int show_launches(const Context *c, uint64_t limit)
{
    _cleanup_launch_history_ LaunchHistory h = {0};
    _cleanup_close_ int fd = -EBADF;
    usec_t now = clock_now(CLOCK_REALTIME);
    int r;

    if (visible_is_needed(c)) {
        _cleanup_visible_ Visible v = {0};

        r = visible_read(c, now, &v);
        return r < 0 ? r : print_launches(c, &v.launches, limit);
    }
    r = cli_state_open(c, false, &fd);
    if (r >= 0)
        r = launch_history_read(c, fd, now, &h);
    return r < 0 && r != -ENOENT ? r : print_launches(c, &h, limit);
}

static int parse_options(Context *c, Stage *only, bool *launches, uint64_t *limit)
{
    const char *value;
    int k, r;

    while ((k = cli_next_option(c, &value)) > 0)
        switch (k) {
        case OPTION_STAGE:
            r = cli_parse_stage(c, value, only);
            if (r < 0)
                return r;
            if (*only == STAGE_SESSION)
                return cli_usage_error(c, "--stage=%s: the history has boots and logins", value);
            break;
        case OPTION_LAUNCHES:
            *launches = true;
            break;
        case OPTION_LIMIT:
            if (cli_parse_limit(c, value, limit) < 0)
                return CLI_WRONG_USAGE;
            break;
        }
    return k;
}

static int run(Context *c)
{
    _cleanup_history_ History h = {0};
    _cleanup_close_ int fd = -EBADF;
    uint64_t limit = LIMIT_DEFAULT;
    Stage only = _STAGE_INVALID;
    bool launches = false;
    int r = parse_options(c, &only, &launches, &limit);

    if (r < 0)
        return r;
    if (launches)
        return (int)only >= 0
                       ? cli_usage_error(
                                 c,
                                 "--stage= selects boots or logins, not starts of applications (--launches)")
                       : show_launches(c, limit);
    if (visible_is_needed(c)) {
        _cleanup_visible_ Visible v = {0};

        r = visible_read(c, clock_now(CLOCK_REALTIME), &v);
        return r < 0 ? r : print(c, &v.benefits.history, only, limit);
    }
    r = cli_state_open(c, false, &fd);
    if (r < 0 && r != -ENOENT)
        return r;
    if (r >= 0) {
        r = history_read(fd, 0, &h);
        if (r < 0)
            return cli_error(r, "%s/" HISTORY_FILE ": %m", c->state);
    }
    warn_bad(c, HISTORY_FILE, h.n_bad);
    return print(c, &h, only, limit);
}

const Verb verb_history = {
        .name = "history",
        .arguments = "",
        .summary = "Show how long each boot and login took",
        .description =
                "Hits are data of the pack that the session used. Waste is data of the pack that\n"
                "the session did not use. Misses are data that the session read and that the pack\n"
                "lacks. Hits and waste count whole files in a session with replay, and pages in a\n"
                "session without. Misses always count pages.",
        .options = options,
        .run = run,
};
