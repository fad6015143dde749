/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart doctor: checks what headstart needs. */

#include "base/clock.h"
#include "command/cli-state.h"
#include "command/progress.h"
#include "command/style.h"
#include "view/checks.h"

#include <string.h>

static Table *checks_table(const Checks *checks)
{
    static const Column columns[] = {
            {"CHECK", "check", CELL_STRING},   {"RESULT", "result", CELL_STRING},
            {"FOUND", "found", CELL_STRING},   {"COST", "cost", CELL_STRING},
            {"REMEDY", "remedy", CELL_STRING}, {0},
    };
    Table *t = table_new(columns);

    for (size_t i = 0; i < checks->n; i++) {
        const Check *x = &checks->items[i];

        table_row(t, x->name, check_result_to_string(x->result), x->found, x->cost, x->remedy);
    }
    return t;
}

#define INDENT 20 /* the width of result and name */

static void print_text(const Checks *checks)
{
    static const Style styles[_CHECK_RESULT_MAX] = {
            [CHECK_OK] = STYLE_GOOD,
            [CHECK_NOTE] = STYLE_NOTE,
            [CHECK_PROBLEM] = STYLE_BAD,
    };

    for (size_t i = 0; i < checks->n; i++) {
        const Check *x = &checks->items[i];

        printf("%s%-8s%s %-10s ", style_on(styles[x->result]), check_result_to_string(x->result),
               style_off(), x->name);
        cli_print_wrapped(INDENT, INDENT, "%s", x->found);
        if (x->cost) {
            printf("%*sCost: ", INDENT, "");
            cli_print_wrapped(INDENT + strlen("Cost: "), INDENT, "%s", x->cost);
        }
        if (x->remedy) /* in one line, because it can be a command that somebody copies */
            printf("%*sTo do: %s\n", INDENT, "", x->remedy);
    }
}

static int run(Context *c)
{
    _cleanup_benefits_ Benefits b = {0};
    _cleanup_checks_ Checks checks = {0};
    _cleanup_stage_packs_ StagePacks packs = {0};
    _cleanup_table_ Table *t = NULL;
    _cleanup_close_ int fd = -EBADF;
    _cleanup_(progress_done) Progress progress = {0};
    size_t n_problems = 0;
    bool readable;
    int r = cli_no_options(c);

    if (r < 0)
        return r;
    r = cli_state_open(c, false, &fd);
    if (r >= 0)
        r = benefits_read_if_possible(c, fd, clock_now(CLOCK_REALTIME), &b, &readable);
    if (r < 0 && r != -ENOENT)
        return r;
    /* A systemd that does not answer is awaited for each unit. */
    progress = progress_start("Checking this machine", c->quiet);
    stage_packs_read(fd, &packs);
    checks_add_state(&checks, c, fd, &packs, &b);
    checks_add_machine(&checks, c);
    checks_add_early(&checks, c, fd);
    progress_done(&progress);
    progress = progress_start("Checking the files of the packs", c->quiet);
    checks_add_thorough(&checks, c, fd, &packs, &b, &progress);
    progress_done(&progress);
    if (checks.failed)
        return cli_error(ENOMEM, "%m");
    for (size_t i = 0; i < checks.n; i++)
        n_problems += checks.items[i].result == CHECK_PROBLEM;
    if (c->json == JSON_OFF && !c->quiet)
        print_text(&checks);
    else if (c->json != JSON_OFF) {
        t = checks_table(&checks);
        r = cli_print(c, t);
        if (r < 0)
            return r;
    }
    return n_problems > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

const Verb verb_doctor = {
        .name = "doctor",
        .arguments = "",
        .summary = "Check what headstart needs on this machine",
        .description =
                "Says what is missing, what it costs and what to do. The exit status is 1 if there\n"
                "is a problem, and 0 if there are only notes.",
        .run = run,
};
