/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart merge: adds up the models of several machines. */

#include "base/clock.h"
#include "base/parse.h"
#include "cli/models.h"
#include "command/progress.h"

enum {
    OPTION_OUTPUT = 1,
    OPTION_PRUNE,
    OPTION_PER_MACHINE,
    OPTION_MIN_MACHINES,
};

static const Option options[] = {
        {OPTION_OUTPUT, 'o', "output", "MODEL",
         "Write the sum to MODEL, which may be one of the\nmerged models"},
        {OPTION_PRUNE, 0, "prune", "PERCENT",
         "Leave out files that a smaller share of the sessions\nused [0%]"},
        {OPTION_PER_MACHINE, 0, "per-machine", NULL,
         "Reduce each model as 'export' does, and count it as\none machine"},
        {OPTION_MIN_MACHINES, 0, "min-machines", "N",
         "Leave out what fewer than N machines have seen"},
        {0},
};

typedef struct Merging {
    const Context *c;
    const char *output;
    int prune; /* percent */
    bool per_machine;
    uint64_t min_machines; /* 0: keeps everything */
    usec_t now;
    Model *sum; /* NULL before the first model */
    Table *table;
} Merging;

static void merging_done(Merging *m)
{
    model_free(m->sum);
    table_free(m->table);
}

/* Replaces the model by what 'headstart export' would write. Afterwards the model counts as one
 * machine, however many machines it contained. */
static int reduce(Model **m)
{
    Model *portable;
    int r = model_make_portable(*m, &portable);

    if (r < 0)
        return r;
    model_free(*m);
    *m = portable;
    return 0;
}

/* Returns the largest count of machines among the stages of the model. The counts of the stages
 * differ, and the largest is closest to the number of machines. */
static uint64_t count_machines(const Model *m)
{
    uint64_t n = 0;

    for (size_t i = 0; i < m->n_stages; i++)
        n = MAX(n, model_count_machines(m->stages[i].machines));
    return n;
}

static void add_row(Merging *m, const char *path, const Model *model)
{
    table_row(m->table, path, (uint64_t)model->n_learned, (uint64_t)model->n_stages,
              (uint64_t)model->n_files, count_machines(model));
}

static int add(Merging *m, const char *path)
{
    Model *model;
    int r = models_load(path, m->now, &model);

    if (r < 0)
        return r;
    r = m->per_machine ? reduce(&model) : 0;
    if (r < 0) {
        model_free(model);
        return cli_error(r, "%s: %m", path);
    }
    add_row(m, path, model);
    return models_add(&m->sum, model, path);
}

static int save(Merging *m)
{
    int r = m->min_machines > 0 ? model_drop_rare(&m->sum, m->min_machines) : 0;

    if (r >= 0 && m->prune > 0)
        r = model_prune(&m->sum, m->prune / 100.0);
    return r < 0 ? cli_error(r, "%s: %m", m->output) : models_save(m->sum, m->output);
}

static int print(Merging *m)
{
    /* Standard output then contains the model. */
    bool silent = strcmp(m->output, "-") == 0 || (m->c->json == JSON_OFF && m->c->quiet);

    add_row(m, m->output, m->sum);
    return silent ? 0 : cli_print(m->c, m->table);
}

static int run(Context *c)
{
    static const Column columns[] = {
            {"MODEL", "file", CELL_PATH},           {"TRACES", "n_learned", CELL_COUNT},
            {"STAGES", "n_stages", CELL_COUNT},     {"FILES", "n_files", CELL_COUNT},
            {"MACHINES", "n_machines", CELL_COUNT}, {0},
    };
    _cleanup_(merging_done) Merging m = {.c = c};
    const char *value;
    Progress progress;
    char **args;
    int k, n, r = 0;

    while ((k = cli_next_option(c, &value)) > 0)
        if (k == OPTION_OUTPUT)
            m.output = value;
        else if (k == OPTION_PER_MACHINE)
            m.per_machine = true;
        else if (k == OPTION_MIN_MACHINES) {
            if (parse_u64(value, &m.min_machines) < 0 || m.min_machines == 0)
                return cli_usage_error(c, "--min-machines=%s: not a positive number", value);
        } else if (parse_percent(value, &m.prune) < 0 || m.prune < 0)
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
