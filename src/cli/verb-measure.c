/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart measure: requests a control session. */

#include "command/cli.h"

enum {
    OPTION_STAGE = 1,
};

static const Option options[] = {
        {OPTION_STAGE, 0, "stage", "STAGE", "Measure only the next boot or only the next login"},
        {0},
};

static int print(const Context *c, Stage stage)
{
    static const Column columns[] = {
            {NULL, "stages", CELL_STRING},
            {0},
    };
    const char *both = (int)stage < 0 ? "boot, login" : stage_to_string(stage);

    if (c->json != JSON_OFF)
        return cli_print_json(c, columns, both);
    if (!c->quiet)
        printf("The next %s will run without replay, to measure what replay saves.\n",
               (int)stage < 0 ? "boot and login" : both);
    return 0;
}

static int run(Context *c)
{
    char option[32] = "--next-boot";
    Stage stage = _STAGE_INVALID;
    const char *value;
    int k, r;

    while ((k = cli_next_option(c, &value)) > 0) {
        r = cli_parse_stage(c, value, &stage);
        if (r < 0)
            return r;
        if (stage == STAGE_SESSION)
            return cli_usage_error(c, "--stage=%s: only boots and logins are measured", value);
        snprintf(option, sizeof(option), "--stage=%s", stage_to_string(stage));
    }
    if (k < 0)
        return k;
    /* A control session is a session that is recorded without replay. rerecord requests exactly
     * that. */
    r = cli_run_verb(c, &verb_rerecord, option);
    return r < 0 ? r : print(c, stage);
}

const Verb verb_measure = {
        .name = "measure",
        .arguments = "",
        .summary = "Run the next boot and login without replay, to measure the benefit",
        .description =
                "The next boot and login become control sessions. 'headstart status' compares\n"
                "them with sessions with replay. headstart also draws control sessions by itself:\n"
                "see ControlInterval= in headstart.conf(5).",
        .options = options,
        .run = run,
};
