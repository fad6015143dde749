/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart metrics: prints figures as text in the format OpenMetrics 1.0, for the textfile
 * collector of node_exporter. The figures contain no user and no path. */

#include "base/atomic-file.h"
#include "base/clock.h"
#include "command/cli-state.h"
#include "state/packs.h"
#include "view/checks.h"
#include "view/launch-history.h"

#include <string.h>

enum {
    OPTION_OUTPUT = 1,
};

static const Option options[] = {
        {OPTION_OUTPUT, 0, "output", "FILE", "Write to FILE, which is replaced as a whole"},
        {0},
};

/* Begins a metric family. Every metric is a gauge. */
static void family(FILE *f, const char *name, const char *unit, const char *help)
{
    fprintf(f, "# TYPE headstart_%s gauge\n", name);
    if (unit)
        fprintf(f, "# UNIT headstart_%s %s\n", name, unit);
    fprintf(f, "# HELP headstart_%s %s\n", name, help);
}

static void sample(FILE *f, const char *name, Stage stage, const char *label, double value)
{
    fprintf(f, "headstart_%s{stage=\"%s\"%s} %.15g\n", name, stage_to_string(stage), label, value);
}

static void write_benefit(FILE *f, const Benefits *b)
{
    family(f, "sessions", NULL, "Sessions that are compared, with and without replay.");
    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++) {
        sample(f, "sessions", s, ",replay=\"yes\"", (double)b->stages[s].effect.n_replayed);
        sample(f, "sessions", s, ",replay=\"no\"", (double)b->stages[s].effect.n_control);
    }
    family(f, "saved_ratio", "ratio", "Share of time that replay saves; bounds of 95 %.");
    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++) {
        const Effect *e = &b->stages[s].effect;

        if (!e->known)
            continue;
        sample(f, "saved_ratio", s, ",bound=\"estimate\"", e->saved);
        sample(f, "saved_ratio", s, ",bound=\"low\"", e->saved_low);
        sample(f, "saved_ratio", s, ",bound=\"high\"", e->saved_high);
    }
    family(f, "stage_seconds", "seconds", "Time of a stage with and without replay.");
    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++) {
        const Effect *e = &b->stages[s].effect;

        if (!e->known)
            continue;
        sample(f, "stage_seconds", s, ",replay=\"yes\"", e->replayed_seconds);
        sample(f, "stage_seconds", s, ",replay=\"no\"", e->control_seconds);
    }
    family(f, "harmful", NULL,
           "1 if replay was shown to do harm. It is then off, unless a policy is "
           "configured.");
    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++)
        sample(f, "harmful", s, "", b->stages[s].harmful);
}

/* Writes the figures of all applications together, because only root may read the names of
 * applications. */
static void write_launches(FILE *f, const Effect *e)
{
    family(f, "launches", NULL, "Starts of applications that are compared.");
    fprintf(f, "headstart_launches{replay=\"yes\"} %zu\n", e->n_replayed);
    fprintf(f, "headstart_launches{replay=\"no\"} %zu\n", e->n_control);
    if (!e->known)
        return;
    family(f, "launch_saved_ratio", "ratio",
           "Share of the time of a start that replay saves; bounds of 95 %.");
    fprintf(f, "headstart_launch_saved_ratio{bound=\"estimate\"} %.15g\n", e->saved);
    fprintf(f, "headstart_launch_saved_ratio{bound=\"low\"} %.15g\n", e->saved_low);
    fprintf(f, "headstart_launch_saved_ratio{bound=\"high\"} %.15g\n", e->saved_high);
}

static const SessionRecord *newest(const Benefits *b, Stage stage)
{
    for (size_t i = b->history.n; i-- > 0;)
        if (b->history.sessions[i].stage == stage)
            return &b->history.sessions[i];
    return NULL;
}

/* Writes one figure of the newest session of each stage. `observed` returns the value of the label
 * that says how the figure was observed; NULL: the figure has no such label. */
static void write_newest(FILE *f, const Benefits *b, const char *name, const char *unit,
                         const char *help, size_t offset, double scale,
                         const char *(*observed)(UsageSource s))
{
    family(f, name, unit, help);
    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++) {
        const SessionRecord *x = newest(b, s);
        uint64_t value = x ? *(const uint64_t *)((const char *)x + offset) : SESSION_UNKNOWN;
        const char *word = x && observed ? observed(x->usage.source) : NULL;
        char label[32] = "";

        if (word)
            snprintf(label, sizeof(label), ",observed_per=\"%s\"", word);
        if (value != SESSION_UNKNOWN)
            sample(f, name, s, label, (double)value * scale);
    }
}

static const char *always_page(UsageSource s)
{
    return s == USAGE_NONE ? NULL : "page";
}

static void write_sessions(FILE *f, const Benefits *b)
{
#define NEWEST(name, unit, help, field, scale, observed) \
    write_newest(f, b, name, unit, help, offsetof(SessionRecord, field), scale, observed)
    NEWEST("last_ready_seconds", "seconds", "Time of the newest session.", ready_usec, 1e-6, NULL);
    NEWEST("last_stalled_seconds", "seconds",
           "Time for which tasks waited for I/O in the newest session.", io_some_usec, 1e-6, NULL);
    NEWEST("last_read_bytes", "bytes", "Bytes read from the disk in the newest session.",
           disk_read_bytes, 1, NULL);
    NEWEST("last_replayed_bytes", "bytes", "Bytes that replay read for the newest session.",
           replay_data_bytes, 1, NULL);
    NEWEST("last_hit_bytes", "bytes", "Data of the pack that the newest session used.",
           usage.hit_bytes, 1, usage_source_unit);
    NEWEST("last_waste_bytes", "bytes", "Data of the pack that the newest session did not use.",
           usage.waste_bytes, 1, usage_source_unit);
    NEWEST("last_miss_bytes", "bytes",
           "Data that the newest session read and that is not in the pack.", usage.miss_bytes, 1,
           always_page);
}

/* Adds what `headstart status` checks. */
static void check(const Context *c, int state_fd, const Benefits *b, Checks *checks)
{
    _cleanup_stage_packs_ StagePacks packs = {0};
    _cleanup_user_packs_ UserPacks users = {0};
    uint64_t n_learned;
    PackHeader h;

    stage_packs_read(state_fd, &packs);
    checks_add_state(checks, c, state_fd, &packs, b);
    if (state_fd < 0)
        return;
    checks_add_model(checks, c, state_fd, &n_learned);
    if (packs_list_users(state_fd, &users) < 0)
        return;
    for (size_t i = 0; i < MIN(users.n, (size_t)CHECK_USERS_SHOWN); i++)
        (void)checks_add_user_pack(checks, c, state_fd, users.items[i].uid, &h);
}

static void write_problems(FILE *f, const Checks *checks)
{
    size_t n = 0;

    for (size_t i = 0; i < checks->n; i++)
        n += checks->items[i].result == CHECK_PROBLEM;
    family(f, "problems", NULL, "Problems that headstart status shows.");
    fprintf(f, "headstart_problems %zu\n", n);
}

/* Returns 0, or an error that was reported. */
static int write_text(const Context *c, const char *output, const char *text, size_t size)
{
    int r;

    if (!output)
        return fputs(text, stdout) < 0 ? cli_error(errno, "cannot write the output: %m") : 0;
    r = output_file_write(output, text, size, 0644);
    return r < 0 ? cli_error(r, "%s: %m", output) : 0;
}

static int run(Context *c)
{
    _cleanup_launch_history_ LaunchHistory launches = {0};
    _cleanup_benefits_ Benefits b = {0};
    _cleanup_checks_ Checks checks = {0};
    _cleanup_free_ char *text = NULL;
    _cleanup_close_ int fd = -EBADF;
    const char *value, *output = NULL;
    size_t size;
    FILE *f;
    int k, r;

    while ((k = cli_next_option(c, &value)) > 0)
        output = value;
    if (k < 0)
        return k;
    r = benefits_open(c, &fd, &b);
    if (r >= 0)
        r = launch_history_read(c, fd, clock_now(CLOCK_REALTIME), &launches);
    if (r < 0)
        return r;
    check(c, fd, &b, &checks);
    f = open_memstream(&text, &size);
    if (!f)
        return cli_error(errno, "%m");
    write_benefit(f, &b);
    write_launches(f, &launches.benefits.all.effect);
    write_sessions(f, &b);
    write_problems(f, &checks);
    fputs("# EOF\n", f);
    if (fclose(f) != 0)
        return cli_error(errno, "%m");
    return write_text(c, output, text, size);
}

const Verb verb_metrics = {
        .name = "metrics",
        .arguments = "",
        .summary = "Print the benefit as OpenMetrics text",
        .description =
                "For the textfile collector of node_exporter, as in\n"
                "  headstart metrics --output=/var/lib/prometheus/node-exporter/headstart.prom\n"
                "The figures name no user and no file.",
        .options = options,
        .run = run,
};
