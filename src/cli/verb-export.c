/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart export: writes the part of STATE/model.json that is valid on other machines. */

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "cli/models.h"
#include "command/cli-state.h"
#include "command/progress.h"

#include <string.h>

enum {
    OPTION_OUTPUT = 1,
    OPTION_PRUNE,
};

static const Option options[] = {
        {OPTION_OUTPUT, 'o', "output", "MODEL", "Write to MODEL [standard output]"},
        {OPTION_PRUNE, 0, "prune", "PERCENT",
         "Leave out files that a smaller share of the sessions\nused [0%]"},
        {0},
};

static int export(const Context *c, const char *output, int prune)
{
    _cleanup_model_ Model *m = NULL, *portable = NULL;
    _cleanup_free_ char *error = NULL;
    _cleanup_close_ int fd = -EBADF;
    Progress progress;
    int r = cli_state_open(c, false, &fd);

    if (r == -ENOENT)
        return cli_error(r, "%s: nothing was recorded yet", c->state);
    if (r < 0)
        return r;
    progress = progress_start("Reading the model", c->quiet);
    r = state_load_model(fd, &m, &error);
    progress_done(&progress);
    if (r < 0)
        return cli_error(r, "%s/" STATE_MODEL ": %s", c->state,
                         r == -ENOENT ? "nothing was learned yet (headstart learn)"
                         : error      ? error
                                      : error_text(r));
    r = model_settle_clock(&m, clock_now(CLOCK_REALTIME));
    if (r >= 0)
        r = model_make_portable(m, &portable);
    if (r >= 0 && prune > 0)
        r = model_prune(&portable, prune / 100.0);
    return r < 0 ? cli_error(r, "%m") : models_save(portable, output);
}

static int run(Context *c)
{
    const char *value, *output = "-";
    int k, prune = 0;

    while ((k = cli_next_option(c, &value)) > 0)
        if (k == OPTION_OUTPUT)
            output = value;
        else if (parse_percent(value, &prune) < 0 || prune < 0)
            return cli_usage_error(c, "--prune=%s: not a percentage", value);
    if (k < 0)
        return k;
    if (!*output)
        return cli_usage_error(c, "--output= is empty");
    return export(c, output, prune);
}

const Verb verb_export = {
        .name = "export",
        .arguments = "",
        .summary = "Write what was learned for other machines",
        .description =
                "Writes only names that are the same on every machine, summed over all users. Leaves\n"
                "out paths in home directories and local settings, user ids, positions on disk, and\n"
                "which application follows which.",
        .options = options,
        .run = run,
};
