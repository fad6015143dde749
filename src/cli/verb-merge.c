/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart merge: models of many machines -> one that knows what all of them know. */

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/parse.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "model/model.h"

#include <fcntl.h>
#include <string.h>

enum {
    OPTION_OUTPUT = 1,
    OPTION_PRUNE,
};

static const Option options[] = {
        {OPTION_OUTPUT, 'o', "output", "MODEL", "Where the sum goes; may be one of those merged"},
        {OPTION_PRUNE, 0, "prune", "PERCENT", "Then drop what fewer sessions used [nothing]"},
        {0},
};

typedef struct Merging {
    const Context *c;
    const char *output;
    int prune; /* percent */
    usec_t now;
    Model *sum; /* NULL before the first */
    Table *table;
} Merging;

static void merging_done(Merging *m)
{
    model_free(m->sum);
    table_free(m->table);
}

/* Reads a model and settles its clock: one from a machine whose clock ran years ahead would make
 * everything else count for nothing. */
static int load(const Merging *m, const char *path, Model **ret)
{
    _cleanup_free_ char *text = NULL, *error = NULL;
    _cleanup_model_ Model *model = NULL;
    uint64_t generation;
    usec_t clock;
    size_t size;
    int r;

    r = file_read_whole(AT_FDCWD, path, MODEL_JSON_SIZE_MAX, &text, &size);
    if (r == -EBADMSG)
        return cli_error(r, "%s: not a regular file", path);
    if (r < 0)
        return cli_error(r, "%s: %m", path);
    if (size == 0)
        return cli_error(EBADMSG, "%s: empty file", path);
    r = model_from_json(text, size, &model, &error);
    if (r < 0)
        return cli_error(r, "%s: %s", path, error ? error : strerror(-r));
    clock = model->clock;
    generation = model->chains ? model->chains->generation : 0;
    r = model_settle_clock(&model, m->now);
    if (r < 0)
        return cli_error(r, "%s: %m", path);
    if (model->clock != clock || (model->chains && model->chains->generation != generation))
        cli_warning(0, "%s: learned while the clock ran ahead, brought back to now", path);
    *ret = TAKE_PTR(model);
    return 0;
}

/* Traces that both have learned: they count twice in the sum. */
static size_t count_shared(const Model *a, const Model *b)
{
    size_t n = 0;

    for (size_t i = 0; i < a->n_learned; i++)
        for (size_t k = 0; k < b->n_learned; k++)
            if (a->learned[i].id == b->learned[k].id &&
                a->learned[i].start_realtime == b->learned[k].start_realtime) {
                n++;
                break;
            }
    return n;
}

static int add(Merging *m, const char *path)
{
    char ours[FORMAT_TIMESPAN_MAX], theirs[FORMAT_TIMESPAN_MAX];
    _cleanup_model_ Model *model = NULL, *both = NULL;
    size_t n_shared;
    int r = load(m, path, &model);

    if (r < 0)
        return r;
    table_row(m->table, path, (uint64_t)model->n_learned, (uint64_t)model->n_stages,
              (uint64_t)model->n_files);
    if (!m->sum) {
        m->sum = TAKE_PTR(model);
        return 0;
    }
    if (model->halflife != m->sum->halflife)
        return cli_error(EINVAL, "%s: its half-life is %s, that of the others %s", path,
                         format_timespan(theirs, sizeof(theirs), model->halflife),
                         format_timespan(ours, sizeof(ours), m->sum->halflife));
    n_shared = count_shared(m->sum, model);
    if (n_shared > 0)
        cli_warning(0, "%s: %zu of its sessions are in the others too and will count twice", path,
                    n_shared);
    r = model_merge(m->sum, model, &both);
    if (r == -EINVAL)
        return cli_error(r, "%s: its chains were learned with another window than the others'",
                         path);
    if (r == -E2BIG)
        return cli_error(r, "%s: together with the others it is too large", path);
    if (r < 0)
        return cli_error(r, "%s: %m", path);
    model_free(m->sum);
    m->sum = TAKE_PTR(both);
    return 0;
}

static int save(Merging *m)
{
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r = 0;

    if (m->prune > 0)
        r = model_prune(&m->sum, m->prune / 100.0);
    if (r >= 0)
        r = model_to_json(m->sum, &text, &size);
    if (r >= 0)
        r = atomic_file_write(AT_FDCWD, m->output, text, size, 0600);
    return r < 0 ? cli_error(r, "%s: %m", m->output) : 0;
}

static int print(const Merging *m)
{
    int r;

    table_row(m->table, m->output, (uint64_t)m->sum->n_learned, (uint64_t)m->sum->n_stages,
              (uint64_t)m->sum->n_files);
    if (m->c->json != JSON_OFF)
        r = output_json(m->c->json, table_to_json(m->table));
    else
        r = m->c->quiet ? 0 : table_print(m->table);
    return r < 0 ? cli_error(r, "cannot print: %m") : 0;
}

static int run(Context *c)
{
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
    if (n == 0)
        return cli_usage_error(c, "no model given");

    m.now = clock_now(CLOCK_REALTIME);
    m.table = table_new();
    table_column(m.table, "MODEL", "file", CELL_PATH);
    table_column(m.table, "TRACES", "n_learned", CELL_COUNT);
    table_column(m.table, "STAGES", "n_stages", CELL_COUNT);
    table_column(m.table, "FILES", "n_files", CELL_COUNT);
    progress = progress_start("Merging", c->quiet);
    for (int i = 0; r >= 0 && i < n; i++) {
        progress_update(&progress, (uint64_t)i, (uint64_t)n);
        r = add(&m, args[i]);
    }
    progress_done(&progress);
    if (r >= 0)
        r = save(&m);
    return r < 0 ? r : print(&m);
}

const Verb verb_merge = {
        .name = "merge",
        .arguments = "MODEL…",
        .summary = "Add up models of several machines",
        .description =
                "The sum is exact: any order and any grouping gives the same bytes, so a fleet can "
                "be\nfolded in parts. Never more than two models and their sum are in memory. If "
                "one of\nthem is bad, nothing is written.",
        .options = options,
        .run = run,
};
