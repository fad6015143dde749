/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart replay: runs headstart-replay, the small program that early boot runs. */

#include "cli/cli.h"
#include "cli/program.h"
#include "state/state.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

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

static int run(Context *c)
{
    const char *value, *policy = NULL, *ioprio = NULL, *pack;
    char program[PATH_MAX], path[PATH_MAX], root[PATH_MAX + 8], policy_option[64],
            ioprio_option[64];
    bool wait = false, dry_run = false, force = false;
    Stage stage = STAGE_LOGIN;
    char *argv[12], **args;
    int k, n, r, argc = 0;

    while ((k = cli_next_option(c, &value)) > 0)
        switch (k) {
        case OPTION_STAGE:
            r = cli_parse_stage(c, value, &stage);
            if (r < 0)
                return r;
            break;
        case OPTION_WAIT:
            wait = true;
            break;
        case OPTION_DRY_RUN:
            dry_run = true;
            break;
        case OPTION_FORCE:
            force = true;
            break;
        case OPTION_POLICY:
            if (policy_from_string(value) < 0)
                return cli_usage_error(c, "no such policy: '%s'", value);
            policy = value;
            break;
        case OPTION_IOPRIO:
            if (strcmp(value, "idle") != 0 && strcmp(value, "best-effort") != 0)
                return cli_usage_error(c, "no such I/O priority: '%s' (idle or best-effort)",
                                       value);
            ioprio = value;
            break;
        }
    if (k < 0)
        return k;
    args = cli_arguments(c, &n);
    if (n == 0 && !state_pack_name(stage))
        return cli_usage_error(c, "there is no pack for this stage");

    pack = n == 1 ? args[0] : path;
    if (n == 0)
        snprintf(path, sizeof(path), "%s/%s", c->state, state_pack_name(stage));
    if (access(pack, F_OK) < 0 && errno == ENOENT && n == 0)
        return cli_error(ENOENT, "%s: no pack yet: record, learn and plan first", pack);
    if (access(pack, R_OK) < 0)
        return cli_error(errno, "%s: %m", pack);
    r = cli_find_program(PROGRAM, "replay", program, sizeof(program));
    if (r < 0)
        return r;

    argv[argc++] = program;
    if (strcmp(c->root, "/") != 0) {
        snprintf(root, sizeof(root), "--root=%s", c->root);
        argv[argc++] = root;
    }
    if (wait)
        argv[argc++] = (char *)"--wait";
    if (dry_run)
        argv[argc++] = (char *)"--dry-run";
    if (force)
        argv[argc++] = (char *)"--force";
    if (c->json != JSON_OFF)
        argv[argc++] = (char *)"--json";
    if (policy) {
        snprintf(policy_option, sizeof(policy_option), "--policy=%s", policy);
        argv[argc++] = policy_option;
    }
    if (ioprio) {
        snprintf(ioprio_option, sizeof(ioprio_option), "--ioprio=%s", ioprio);
        argv[argc++] = ioprio_option;
    }
    argv[argc++] = (char *)pack;
    argv[argc] = NULL;
    /* Quiet: its line of summary goes nowhere, its errors stay. */
    if (c->quiet && !freopen("/dev/null", "w", stdout))
        return cli_error(errno, "/dev/null: %m");
    execv(program, argv);
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
