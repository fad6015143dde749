/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart evaluate: runs headstart-evaluate, which knows the verb's options. */

#include "command/cli.h"
#include "command/program.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#define PROGRAM "headstart-evaluate"

static int run(Context *c)
{
    static const char *const json[] = {[JSON_OFF] = "--json=off",
                                       [JSON_SHORT] = "--json=short",
                                       [JSON_PRETTY] = "--json=pretty"};
    _cleanup_free_ const char **argv = calloc((size_t)c->options.argc + 4, sizeof(*argv));
    _cleanup_free_ char *state = NULL;
    char program[PATH_MAX];
    int r, n = 0;

    if (!argv || asprintf(&state, "--state=%s", c->state) < 0) {
        state = NULL;
        return cli_error(ENOMEM, "%m");
    }
    r = cli_find_program(PROGRAM, "evaluate", program, sizeof(program));
    if (r < 0)
        return r;
    /* The options before the verb come first, then those after the verb. */
    argv[n++] = program;
    argv[n++] = state;
    argv[n++] = json[c->json];
    if (c->quiet)
        argv[n++] = "--quiet";
    for (int i = 1; i < c->options.argc; i++)
        argv[n++] = c->options.argv[i];
    execv(program, (char **)argv);
    return cli_error(errno, "%s: %m", program);
}

const Verb verb_evaluate = {
        .name = "evaluate",
        .arguments = "[TRACE|DIR…]",
        .max_arguments = VERB_ANY,
        .summary = "Evaluate the predictors on recorded traces",
        .run = run,
};
