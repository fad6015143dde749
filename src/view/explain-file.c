/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/explain.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/rooted.h"
#include "command/progress.h"
#include "model/ownership.h"
#include "pack/pack.h"
#include "plan/plan.h"
#include "state/packs.h"
#include "state/state.h"
#include "view/explain-launch.h"
#include "view/explain-price.h"
#include "view/pack-entry.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* At most this many applications are named for a file. */
#define APPLICATIONS_NAMED 3U

/* Reads the pack of this stage and user, and finds the file in it. */
static void search_pack(int state_fd, Stage stage, uint32_t uid, const char *path, PackEntry *e)
{
    char name[PACK_NAME_MAX];

    (void)pack_entry_read(state_fd, packs_name(name, stage, uid), path, e);
}

/* --- the reason ------------------------------------------------------------------------------- */

static const ModelStageFile *find_use(const ModelStage *g, uint32_t file)
{
    for (size_t i = 0; i < g->n_files; i++)
        if (g->files[i].file == file)
            return &g->files[i];
    return NULL;
}

/* Returns true if a pack for that stage and user may contain the file. */
static bool is_allowed(const ModelStage *g, const struct stat *st)
{
    uint32_t user = g->stage == STAGE_BOOT  ? OWNERSHIP_SYSTEM
                    : g->uid == UID_INVALID ? OWNERSHIP_ANYBODY
                                            : g->uid;

    return ownership_allows(st->st_uid, st->st_gid, st->st_mode, user);
}

/* Returns true if sessions of the stage used data of the file. */
static bool has_data(const ModelStageFile *f)
{
    return f && model_best_residency(f)->ranges.n > 0;
}

/* Returns why the pack contains no data of a file that exists and that the pack may contain. */
static const char *why_left_out(const Model *m, const PackEntry *e, const FilePrice *price,
                                uint64_t budget)
{
    if (le64toh(e->pack.header->created_realtime_usec) < model_wall_clock(m))
        return "its data is not read: the pack is older than the model (headstart plan)";
    if (!price->volume)
        return "its data is not read: no range of it is likely enough (10 %), or its place is unknown";
    if (budget != COUNT_UNKNOWN && e->total + price->bytes > budget)
        return "its data is not read: it does not fit into the budget";
    return "its data is not read: it did not fit into the budget when the pack was planned";
}

static const char *why(const Context *c, const Model *m, const ModelStage *g,
                       const ModelStageFile *f, const PackEntry *e, const FilePrice *price,
                       uint64_t budget, const char *path)
{
    double probability = f ? decayed_sum_ratio(f->used, g->sessions) : 0;
    _cleanup_free_ char *full = NULL;
    struct stat st;

    if (e->found && e->bytes == 0 && has_data(f))
        return why_left_out(m, e, price, budget);
    if (e->found)
        return e->probability < e->least + 1e-4 ? "in the pack, among its least likely files"
                                                : "in the pack: likely enough for its size";
    if (!f)
        return "no session of this stage used it";
    if (!e->has_pack)
        return "no pack was planned";
    if (probability < PLAN_MIN_PROBABILITY_DEFAULT)
        return "too unlikely: below 10 %";
    if (asprintf(&full, "%s%s", strcmp(c->root, "/") == 0 ? "" : c->root, path) < 0 ||
        lstat(full, &st) < 0)
        return "the file does not exist";
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return "neither a regular file nor a directory";
    if (!is_allowed(g, &st))
        return "its owner or its mode does not allow it";
    if (S_ISREG(st.st_mode) && !has_data(f))
        return "it was opened, and none of its data was read";
    return why_left_out(m, e, price, budget);
}

/* --- the applications that use a file --------------------------------------------------------- */

/* Returns a text with the paths of the applications of the stage that use the file most often:
 * "/usr/bin/sh, /usr/bin/cat". The caller frees it. NULL: none is known, or out of memory. */
static char *name_applications(const Model *m, const ModelStage *g, uint32_t file)
{
    const ModelUse *best[APPLICATIONS_NAMED] = {0};
    char *text = NULL;

    for (size_t i = 0; i < g->n_uses; i++) {
        const ModelUse *u = &g->uses[i];

        if (u->file != file || g->applications[u->application].file == MODEL_NONE)
            continue;
        for (size_t k = 0; k < APPLICATIONS_NAMED; k++)
            if (!best[k] || decayed_sum_value(u->used) > decayed_sum_value(best[k]->used)) {
                const ModelUse *next = best[k];

                best[k] = u;
                u = next;
                if (!u)
                    break;
            }
    }
    for (size_t k = 0; k < APPLICATIONS_NAMED && best[k]; k++) {
        const char *path = m->files[g->applications[best[k]->application].file].path;
        char *more;

        if (asprintf(&more, "%s%s%s", text ? text : "", text ? ", " : "", path) < 0)
            break;
        free(text);
        text = more;
    }
    return text;
}

/* A price as both tables show it. */
typedef struct ShownPrice {
    uint64_t bytes;
    usec_t saved, expected, cost;
    const char *device;
} ShownPrice;

static ShownPrice show_price(const FilePrice *p, double probability)
{
    if (!p->volume)
        return (ShownPrice){COUNT_UNKNOWN, USEC_INFINITY, USEC_INFINITY, USEC_INFINITY, NULL};
    return (ShownPrice){
            .bytes = p->bytes,
            .saved = (usec_t)p->price.saved_usec,
            .expected = (usec_t)(probability * p->price.saved_usec),
            .cost = (usec_t)p->price.cost_usec,
            .device = p->volume->device,
    };
}

static const char *show_source(const FilePrice *p)
{
    if (!p->volume)
        return NULL;
    return p->measured ? "measured" : "typical of its class";
}

/* Adds the row of a stage to both tables. `prices` is for text; JSON has both in one row. */
static void add_stage(const Context *c, int state_fd, const Model *m, const ModelStage *g,
                      uint32_t file, const PriceFacts *facts, Table *stages, Table *prices)
{
    const ModelStageFile *f = find_use(g, file);
    const char *path = m->files[file].path, *stage = stage_to_string(g->stage);
    double used = f ? decayed_sum_ratio(f->used, g->sessions) : 0, probability = used;
    double sessions = model_sessions(m, g, clock_now(CLOCK_REALTIME));
    uint64_t uid = g->uid == UID_INVALID ? COUNT_UNKNOWN : (uint64_t)g->uid, total;
    _cleanup_free_ char *applications = name_applications(m, g, file);
    _cleanup_pack_entry_ PackEntry e = {.least = -1};
    const char *reason = "sessions have no pack: what comes next is predicted";
    FilePrice price = {0};
    ShownPrice shown;

    if (g->stage == STAGE_SESSION && !f)
        return;
    if (g->stage != STAGE_SESSION) {
        search_pack(state_fd, g->stage, g->uid, path, &e);
        probability = e.found ? e.probability : probability;
        if (e.bytes > 0)
            price_in_pack(facts, &e.pack, e.volume, e.file, &price);
        else if (f)
            price_outside_pack(c, facts, e.has_pack ? &e.pack : NULL, path, f, probability, &price);
        reason = why(c, m, g, f, &e, &price, facts->budget_bytes, path);
    }
    shown = show_price(&price, probability);
    total = e.has_pack ? e.total : COUNT_UNKNOWN;
    table_row(stages, stage, uid, (int)e.found, probability, used * sessions, sessions, reason,
              applications, e.bytes, shown.bytes, shown.saved, shown.expected, shown.cost,
              shown.device, (int)price.measured, total, facts->budget_bytes, e.least);
    if (shown.device || e.has_pack)
        table_row(prices, stage, uid, shown.bytes, shown.saved, shown.expected, shown.cost,
                  shown.device, show_source(&price), total, facts->budget_bytes);
}

static Table *stage_table(const Context *c, int state_fd, const Model *m, uint32_t file,
                          Table *prices)
{
    static const Column columns[] = {
            {"STAGE", "stage", CELL_STRING},
            {"UID", "uid", CELL_COUNT},
            {"IN PACK", "in_pack", CELL_BOOLEAN},
            {"PROBABILITY", "probability", CELL_PROBABILITY},
            {"SESSIONS", "sessions_used", CELL_NUMBER},
            {"OF", "sessions", CELL_NUMBER},
            {"WHY", "why", CELL_STRING},
            {"USED BY", "applications", CELL_STRING},
            {NULL, "pack_bytes", CELL_BYTES},
            {NULL, "data_bytes", CELL_BYTES},
            {NULL, "saved_usec", CELL_TIMESPAN},
            {NULL, "expected_saved_usec", CELL_TIMESPAN},
            {NULL, "cost_usec", CELL_TIMESPAN},
            {NULL, "device", CELL_STRING},
            {NULL, "device_measured", CELL_BOOLEAN},
            {NULL, "pack_total_bytes", CELL_BYTES},
            {NULL, "budget_bytes", CELL_BYTES},
            {NULL, "least_probability", CELL_PROBABILITY},
            {0},
    };
    _cleanup_(price_facts_done) PriceFacts facts = {0};
    Table *t = table_new(columns);

    price_facts_read(c, state_fd, &facts);
    for (size_t i = 0; i < m->n_stages; i++)
        add_stage(c, state_fd, m, &m->stages[i], file, &facts, t, prices);
    return t;
}

static Table *price_table(void)
{
    static const Column columns[] = {
            {"STAGE", NULL, CELL_STRING},
            {"UID", NULL, CELL_COUNT},
            {"DATA", NULL, CELL_BYTES},
            {"SAVES", NULL, CELL_TIMESPAN},
            {"ON AVERAGE", NULL, CELL_TIMESPAN},
            {"COSTS", NULL, CELL_TIMESPAN},
            {"DEVICE", NULL, CELL_STRING},
            {"SPEED", NULL, CELL_STRING},
            {"WHOLE PACK", NULL, CELL_BYTES},
            {"BUDGET", NULL, CELL_BYTES},
            {0},
    };
    static const char *const optional[] = {"SPEED", "UID", NULL};
    Table *t = table_new(columns);

    table_set_optional(t, optional);
    return t;
}

/* --- the files of an application -------------------------------------------------------------- */

typedef struct ApplicationUse {
    const char *stage, *path;
    double probability;
} ApplicationUse;

static int by_probability(const void *a, const void *b)
{
    const ApplicationUse *x = a, *y = b;

    if (x->probability != y->probability)
        return x->probability > y->probability ? -1 : 1;
    return strcmp(x->path, y->path);
}

/* Makes a table of the files that the application uses, the most probable first. The table has no
 * rows if the file is not an application. Returns NULL if out of memory. */
static Table *use_table(const Model *m, uint32_t file, uint64_t limit)
{
    static const Column columns[] = {
            {"FILE", "path", CELL_PATH},
            {"STAGE", "stage", CELL_STRING},
            {"USED", "probability", CELL_PROBABILITY},
            {0},
    };
    _cleanup_free_ ApplicationUse *v = NULL;
    size_t n = 0, allocated = 0;
    Table *t = table_new(columns);

    for (size_t i = 0; i < m->n_stages; i++) {
        const ModelStage *g = &m->stages[i];

        for (size_t k = 0; k < g->n_uses; k++) {
            const ModelApplication *a = &g->applications[g->uses[k].application];

            if (a->file != file)
                continue;
            if (grow_array(&v, &allocated, n + 1, sizeof(*v)) < 0)
                return table_free(t);
            v[n++] = (ApplicationUse){stage_to_string(g->stage), m->files[g->uses[k].file].path,
                                      decayed_sum_ratio(g->uses[k].used, a->active)};
        }
    }
    if (n > 0)
        qsort(v, n, sizeof(*v), by_probability);
    for (size_t i = 0; i < n && (limit == 0 || i < limit); i++)
        table_row(t, v[i].path, v[i].stage, v[i].probability);
    table_set_total(t, n);
    return t;
}

/* Finds the file of an application of any stage by the last part of its path. Returns MODEL_NONE if
 * there is none. */
static uint32_t find_application(const Model *m, const char *name)
{
    for (size_t i = 0; i < m->n_stages; i++)
        for (size_t k = 0; k < m->stages[i].n_applications; k++) {
            uint32_t file = m->stages[i].applications[k].file;
            const char *slash = file == MODEL_NONE ? NULL : strrchr(m->files[file].path, '/');

            if (slash && strcmp(slash + 1, name) == 0)
                return file;
        }
    return MODEL_NONE;
}

/* Returns the path without symbolic links, relative to --root=, or NULL if the file does not exist.
 * The caller frees it. A path that does not begin with / is relative to the working directory. */
static char *resolve_path(const Context *c, const char *name)
{
    char link[64], full[PATH_MAX], root[PATH_MAX], working[PATH_MAX + 1] = "";
    _cleanup_free_ char *path = NULL;
    _cleanup_close_ int root_fd = open(c->root, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -EBADF;
    size_t prefix;
    ssize_t n;

    if (root_fd < 0 || !realpath(c->root, root) ||
        (*name != '/' && (strcmp(root, "/") != 0 || !getcwd(working, PATH_MAX))) ||
        asprintf(&path, "%s/%s", working, name) < 0)
        return NULL;
    fd = rooted_open(root_fd, path, O_PATH);
    if (fd < 0)
        return NULL;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, full, sizeof(full) - 1);
    if (n < 0)
        return NULL;
    full[n] = 0;
    prefix = strcmp(root, "/") == 0 ? 0 : strlen(root);
    return strncmp(full, root, prefix) == 0 && full[prefix] == '/' ? strdup(full + prefix) : NULL;
}

/* Finds the file with that path, or else the one that the path leads to: /bin is a link to /usr/bin
 * on most systems. Returns MODEL_NONE if no stage has used it. */
static uint32_t find_file(const Context *c, const Model *m, const char *name)
{
    uint32_t file = model_find_file(m, name);
    _cleanup_free_ char *resolved = file == MODEL_NONE ? resolve_path(c, name) : NULL;

    return resolved ? model_find_file(m, resolved) : file;
}

int explain_file(const Context *c, int state_fd, const char *name, uint64_t limit)
{
    static const Column columns[] = {
            {"File", "path", CELL_PATH},
            {"Why it is replayed or not", "stages", CELL_TABLE},
            {"What its data saves if it is needed, and costs in the replay", NULL, CELL_TABLE},
            {"Launch sets that contain it, or that are read when it starts", "launch_sets",
             CELL_TABLE},
            {"Files that it uses as an application", "files", CELL_TABLE},
            {0},
    };
    _cleanup_free_ char *error = NULL;
    _cleanup_table_ Table *t = NULL;
    _cleanup_model_ Model *m = NULL;
    Table *stages, *prices, *sets;
    Progress progress = progress_start("Reading the model", c->quiet);
    uint32_t file;
    int r = state_load_model_stages(state_fd, &m, &error);

    progress_done(&progress);
    if (r == -ENOENT)
        return cli_error(r, "%s: nothing was learned yet (headstart learn)", c->state);
    if (r < 0)
        return cli_error(r, "%s/" STATE_MODEL ": %s", c->state, error ? error : error_text(r));
    file = strchr(name, '/') ? find_file(c, m, name) : find_application(m, name);
    if (file == MODEL_NONE)
        return cli_error(ENOENT, "%s: no recorded boot, login or session has used it", name);
    r = explain_launch_sets(c, state_fd, m, file, limit, &sets);
    if (r < 0)
        return r;
    prices = price_table();
    stages = stage_table(c, state_fd, m, file, prices);
    t = table_new(columns);
    table_row(t, m->files[file].path, stages, prices, sets, use_table(m, file, limit));
    return cli_print_fields(c, t);
}
