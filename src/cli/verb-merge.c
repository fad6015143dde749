/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart merge: adds up the models of several machines. */

#include "base/clock.h"
#include "base/parse.h"
#include "cli/models.h"
#include "cli/progress.h"

enum {
    OPTION_OUTPUT = 1,
    OPTION_PRUNE,
};

static const Option options[] = {
        {OPTION_OUTPUT, 'o', "output", "MODEL",
         "Write the sum to MODEL, which may be one of the\nmerged models"},
        {OPTION_PRUNE, 0, "prune", "PERCENT", "Leave out files that fewer sessions used [0%]"},
        {0},
};

typedef struct Merging {
    const Context *c;
    const char *output;
    int prune; /* percent */
    usec_t now;
    Model *sum; /* NULL before the first model */
    Table *table;
} Merging;

static void merging_done(Merging *m)
{
    model_free(m->sum);
    table_free(m->table);
}

static int add(Merging *m, const char *path)
{
    Model *model;
    int r = models_load(path, m->now, &model);

    if (r < 0)
        return r;
    table_row(m->table, path, (uint64_t)model->n_learned, (uint64_t)model->n_stages,
              (uint64_t)model->n_files);
    return models_add(&m->sum, model, path);
}

static int save(Merging *m)
{
    int r = m->prune > 0 ? model_prune(&m->sum, m->prune / 100.0) : 0;

    return r < 0 ? cli_error(r, "%s: %m", m->output) : models_save(m->sum, m->output);
}

static int print(const Merging *m)
{
    table_row(m->table, m->output, (uint64_t)m->sum->n_learned, (uint64_t)m->sum->n_stages,
              (uint64_t)m->sum->n_files);
    return m->c->json == JSON_OFF && m->c->quiet ? 0 : cli_print(m->c, m->table);
}

static int run(Context *c)
{
    static const Column columns[] = {
            {"MODEL", "file", CELL_PATH},
            {"TRACES", "n_learned", CELL_COUNT},
            {"STAGES", "n_stages", CELL_COUNT},
            {"FILES", "n_files", CELL_COUNT},
            {0},
    };
    _cleanup_(merging_done) Merging m = {.c = c};
    const char *value;
    Progress progress;
    char **args;
    int k, n, r = 0;

    while ((k = cli_next_option(c, &value)) > 0)
        if (k == OPTION_OUTPUT)
            m.output = value;
        else if (parse_percent(value, &m.prune) < 0 || m.prune < 0)
            return cli_usage_error(c, "--prune=%s: not a percentage", value);
    if (k < 0)
        return k;
    args = cli_arguments(c, &n);
    if (!m.output || !*m.output)
        return cli_usage_error(c, "--output= is missing");

    m.now = clock_now(CLOCK_REALTIME);
    m.table = table_new(columns);
    progress = progress_start("Merging", c->quiet);
    for (int i = 0; r >= 0 && i < n; i++) {
        progress_update(&progress, (uint64_t)i, (uint64_t)n);
        r = add(&m, args[i]);
    }
    progress_done(&progress);
    if (r >= 0)
        r = save(&m);
    if (r >= 0 && model_is_full(m.sum))
        cli_warning(
                0,
                "%s: too many machines for its sums of time, applications seem to start too often: "
                "merge fewer",
                m.output);
    return r < 0 ? r : print(&m);
}

const Verb verb_merge = {
        .name = "merge",
        .arguments = "MODEL…",
        .min_arguments = 1,
        .max_arguments = VERB_ANY,
        .summary = "Add up models of several machines",
        .description =
                "The sum is exact: the same models give the same bytes in any order and grouping.\n"
                "At most two models and their sum are in memory. If a model is bad, nothing is\n"
                "written.",
        .options = options,
        .run = run,
};
