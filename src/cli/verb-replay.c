/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart replay: runs headstart-replay, the small program that early boot runs. */

#include "command/cli.h"
#include "command/program.h"
#include "state/state.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

#define PROGRAM "headstart-replay"

enum {
    OPTION_STAGE = 1,
    OPTION_WAIT,
    OPTION_DRY_RUN,
    OPTION_POLICY,
    OPTION_IOPRIO,
    OPTION_FORCE,
};

static const Option options[] = {
        {OPTION_STAGE, 0, "stage", "STAGE", "Replay the pack of boot or login [login]"},
        {OPTION_WAIT, 0, "wait", NULL, "Return when the data is in the page cache"},
        {OPTION_DRY_RUN, 0, "dry-run", NULL, "Print the operations, read nothing"},
        {OPTION_POLICY, 0, "policy", "POLICY",
         "Override the pack's policy: metadata, concurrent,\ngate or idle"},
        {OPTION_IOPRIO, 0, "ioprio", "CLASS", "I/O priority: idle or best-effort"},
        {OPTION_FORCE, 0, "force", NULL, "Replay in a control session and with headstart=0"},
        {0},
};

typedef struct Request {
    Stage stage;
    const char *policy, *ioprio; /* NULL: not given */
    bool wait, dry_run, force;
} Request;

static int parse_options(Context *c, Request *q)
{
    const char *value;
    int k, r;

    while ((k = cli_next_option(c, &value)) > 0)
        switch (k) {
        case OPTION_STAGE:
            r = cli_parse_stage(c, value, &q->stage);
            if (r < 0)
                return r;
            break;
        case OPTION_WAIT:
            q->wait = true;
            break;
        case OPTION_DRY_RUN:
            q->dry_run = true;
            break;
        case OPTION_FORCE:
            q->force = true;
            break;
        case OPTION_POLICY:
            if (policy_from_string(value) < 0)
                return cli_usage_error(c, "no such policy: '%s'", value);
            q->policy = value;
            break;
        case OPTION_IOPRIO:
            if (strcmp(value, "idle") != 0 && strcmp(value, "best-effort") != 0)
                return cli_usage_error(c, "no such I/O priority: '%s' (idle or best-effort)",
                                       value);
            q->ioprio = value;
            break;
        }
    return k;
}

/* Finds the pack that the command line names, or else the pack of the stage. The caller frees *ret.
 * Returns 0, or an error that was reported. */
static int find_pack(const Context *c, Stage stage, char **ret)
{
    _cleanup_free_ char *pack = NULL;
    int n, r;
    char **arguments = cli_arguments(c, &n);

    if (n == 0 && !state_pack_name(stage))
        return cli_usage_error(c, "there is no pack for this stage");
    r = n > 0 ? asprintf(&pack, "%s", arguments[0])
              : asprintf(&pack, "%s/%s", c->state, state_pack_name(stage));
    if (r < 0) {
        pack = NULL;
        return cli_error(ENOMEM, "%m");
    }
    if (access(pack, R_OK) < 0)
        return errno == ENOENT && n == 0
                       ? cli_error(ENOENT, "%s: no pack yet: record, learn and plan first", pack)
                       : cli_error(errno, "%s: %m", pack);
    *ret = TAKE_PTR(pack);
    return 0;
}

#define ARGUMENTS_MAX 10U

typedef struct Arguments {
    char *items[ARGUMENTS_MAX + 1]; /* ends with NULL */
    size_t n;
    bool failed; /* memory ran out */
} Arguments;

static void arguments_done(Arguments *a)
{
    for (size_t i = 0; i < a->n; i++)
        free(a->items[i]);
}

static void _printf_(2, 3) add(Arguments *a, const char *format, ...)
{
    va_list ap;

    assert(a->n < ARGUMENTS_MAX);
    va_start(ap, format);
    if (vasprintf(&a->items[a->n], format, ap) < 0) {
        a->items[a->n] = NULL;
        a->failed = true;
    } else
        a->n++;
    va_end(ap);
}

static void make_arguments(const Context *c, const Request *q, const char *program,
                           const char *pack, Arguments *a)
{
    add(a, "%s", program);
    if (strcmp(c->root, "/") != 0)
        add(a, "--root=%s", c->root);
    if (q->wait)
        add(a, "--wait");
    if (q->dry_run)
        add(a, "--dry-run");
    if (q->force)
        add(a, "--force");
    if (c->json != JSON_OFF)
        add(a, "--json");
    if (q->policy)
        add(a, "--policy=%s", q->policy);
    if (q->ioprio)
        add(a, "--ioprio=%s", q->ioprio);
    add(a, "--");
    add(a, "%s", pack);
}

static int run(Context *c)
{
    _cleanup_(arguments_done) Arguments a = {0};
    _cleanup_free_ char *pack = NULL;
    char program[PATH_MAX];
    Request q = {.stage = STAGE_LOGIN};
    int r;

    r = parse_options(c, &q);
    if (r < 0)
        return r;
    r = find_pack(c, q.stage, &pack);
    if (r >= 0)
        r = cli_find_program(PROGRAM, "replay", program, sizeof(program));
    if (r < 0)
        return r;
    make_arguments(c, &q, program, pack, &a);
    if (a.failed)
        return cli_error(ENOMEM, "%m");
    /* --quiet drops the summary and keeps the errors. */
    if (c->quiet && !freopen("/dev/null", "w", stdout))
        return cli_error(errno, "/dev/null: %m");
    if (!q.dry_run)
        return cli_run_program(a.items, "Reading the pack", c->quiet);
    execv(program, a.items);
    return cli_error(errno, "%s: %m", program);
}

const Verb verb_replay = {
        .name = "replay",
        .arguments = "[PACK]",
        .max_arguments = 1,
        .summary = "Read a pack into the page cache",
        .description =
                "Runs headstart-replay(8). Without PACK, replays the pack of the stage in the\n"
                "state directory.",
        .options = options,
        .run = run,
};
