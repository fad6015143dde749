/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart import: adds models of other machines to STATE/model.json. */

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/models.h"
#include "command/cli-state.h"
#include "command/progress.h"
#include "command/systemctl.h"

#include <inttypes.h>
#include <string.h>

static int import(const Context *c, char **files, int n, Model **ret)
{
    _cleanup_(progress_done) Progress progress = {0};
    _cleanup_model_ Model *sum = NULL, *own = NULL;
    usec_t now = clock_now(CLOCK_REALTIME);
    _cleanup_free_ char *error = NULL;
    _cleanup_close_ int fd = -EBADF;
    int r = cli_state_open(c, true, &fd);

    if (r >= 0)
        r = cli_state_lock(c, fd);
    if (r < 0)
        return r;
    progress = progress_start("Importing", c->quiet);
    r = state_load_model(fd, &own, &error);
    if (r < 0 && r != -ENOENT)
        return cli_error(r, "%s/" STATE_MODEL ": %s", c->state, error ? error : error_text(r));
    /* A model whose half-life is not HalfLife= is refused even if this machine has no model yet,
     * because the next `headstart learn` would delete the imported model. */
    sum = own ? TAKE_PTR(own) : model_new(c->config.halflife_usec);
    r = sum ? model_settle_clock(&sum, now) : -ENOMEM;
    if (r < 0)
        return cli_error(r, "%m");
    for (int i = 0; i < n; i++) {
        Model *m;

        progress_update(&progress, (uint64_t)i, (uint64_t)n);
        r = models_load(files[i], now, &m);
        if (r >= 0) {
            model_drop_machine_facts(m); /* exports of older versions have them */
            r = models_add(&sum, m, files[i]);
        }
        if (r < 0)
            return r;
    }
    r = cli_state_write_model(c, fd, sum);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(sum);
    return 0;
}

static int run(Context *c)
{
    static const Column columns[] = {
            {NULL, "n_models", CELL_COUNT},
            {NULL, "n_files", CELL_COUNT},
            {0},
    };
    _cleanup_model_ Model *sum = NULL;
    char **args;
    int n, r;

    r = cli_no_options(c);
    if (r < 0)
        return r;
    args = cli_arguments(c, &n);
    r = import(c, args, n, &sum);
    if (r < 0)
        return r;
    systemctl_reload_headstartd(c); /* it continues with the sum */
    if (c->json != JSON_OFF)
        return cli_print_json(c, columns, (uint64_t)n, (uint64_t)sum->n_files);
    if (!c->quiet)
        printf("Imported: the model has %zu file%s now. 'headstart plan' plans those that exist.\n",
               sum->n_files, text_plural_s(sum->n_files));
    return 0;
}

const Verb verb_import = {
        .name = "import",
        .arguments = "MODEL…",
        .min_arguments = 1,
        .max_arguments = VERB_ANY,
        .summary = "Add models of other machines",
        .description =
                "Adds models that 'headstart export' or 'headstart merge' wrote. Their sessions\n"
                "count and age like those of this machine. If a model is bad, none is added.",
        .options = NULL,
        .run = run,
};
