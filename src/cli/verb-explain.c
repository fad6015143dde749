/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart explain: shows why a file is in a pack or not, and why a session was replayed as it
 * was. */

#include "base/parse.h"
#include "command/cli-state.h"
#include "view/explain.h"

enum {
    OPTION_LAST_BOOT = 1,
    OPTION_LAST_LOGIN,
    OPTION_LIMIT,
};

#define LIMIT_DEFAULT 10

static const Option options[] = {
        {OPTION_LAST_BOOT, 0, "last-boot", NULL, "Explain the newest boot"},
        {OPTION_LAST_LOGIN, 0, "last-login", NULL, "Explain the newest login"},
        {OPTION_LIMIT, 'n', "limit", "N", "Maximum number of rows of each long table; 0: all [10]"},
        {0},
};

static int parse_options(Context *c, Stage *stage, uint64_t *limit)
{
    const char *value;
    int k;

    while ((k = cli_next_option(c, &value)) > 0)
        switch (k) {
        case OPTION_LAST_BOOT:
            *stage = STAGE_BOOT;
            break;
        case OPTION_LAST_LOGIN:
            *stage = STAGE_LOGIN;
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
    _cleanup_close_ int fd = -EBADF;
    uint64_t limit = LIMIT_DEFAULT;
    Stage stage = _STAGE_INVALID;
    char **arguments;
    int n, r = parse_options(c, &stage, &limit);

    if (r < 0)
        return r;
    arguments = cli_arguments(c, &n);
    if ((n == 1) == ((int)stage >= 0))
        return cli_usage_error(c,
                               "either a path or an application, or --last-boot or --last-login");
    r = cli_state_open(c, false, &fd);
    if (r == -ENOENT)
        return cli_error(r, "%s: nothing was recorded yet", c->state);
    if (r < 0)
        return r;
    return n == 1 ? explain_file(c, fd, arguments[0], limit) : explain_session(c, fd, stage, limit);
}

const Verb verb_explain = {
        .name = "explain",
        .arguments = "[PATH|APPLICATION]",
        .max_arguments = 1,
        .summary = "Explain why a file is replayed or not, or the last boot or login",
        .description =
                "Shows for a file which applications and how many sessions used it, how probable\n"
                "its use is, why it is in a pack or not, and how much time its data saves and costs\n"
                "on this device. Of an application, given as a path or a name, also shows its\n"
                "files. With --last-boot or --last-login, shows what was replayed and why, and the\n"
                "files with the most data that were missed or wasted.",
        .options = options,
        .run = run,
};
