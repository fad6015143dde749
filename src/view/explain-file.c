/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/explain.h"

#include "base/clock.h"
#include "base/log.h"
#include "model/ownership.h"
#include "pack/pack.h"
#include "plan/plan.h"
#include "state/packs.h"
#include "state/state.h"

#include <string.h>
#include <sys/stat.h>

/* At most this many applications are named for a file. */
#define APPLICATIONS_NAMED 3U

/* What a pack contains of one file. */
typedef struct PackEntry {
    bool has_pack, found;
    double probability; /* of the file */
    double least;       /* lowest probability of a file of the pack */
    uint64_t bytes;     /* of the file in the pack */
    uint64_t total;     /* of the pack */
} PackEntry;

static double probability_of(le16_t p)
{
    return (double)le16toh(p) / PACK_PROBABILITY_ONE;
}

static bool is_path(const char *mountpoint, const char *name, const char *path)
{
    size_t n = strcmp(mountpoint, "/") == 0 ? 0 : strlen(mountpoint);

    if (strncmp(path, mountpoint, n) != 0)
        return false;
    if (strcmp(name, ".") == 0)
        return path[n] == 0 || strcmp(path, mountpoint) == 0;
    return path[n] == '/' && strcmp(path + n + 1, name) == 0;
}

static void search_volume(const Pack *p, const PackVolume *v, const char *path, PackEntry *e)
{
    uint32_t file = UINT32_MAX;

    for (uint32_t k = 0; k < le32toh(v->n_files); k++) {
        uint32_t i = le32toh(v->first_file) + k;
        double probability = probability_of(p->files[i].probability);

        e->least = probability < e->least ? probability : e->least;
        if (!is_path(pack_string(p, v->mountpoint), pack_string(p, p->files[i].path), path))
            continue;
        file = i;
        e->found = true;
        e->probability = probability;
    }
    for (uint32_t k = 0; file != UINT32_MAX && k < le32toh(v->n_data); k++) {
        const PackData *d = p->data + le32toh(v->first_data) + k;

        e->bytes += le32toh(d->file) == file ? le64toh(d->length) : 0;
    }
}

static PackEntry search_pack(int state_fd, Stage stage, uint32_t uid, const char *path)
{
    PackEntry e = {.least = 1};
    _cleanup_free_ char *buf = NULL;
    char name[PACK_NAME_MAX];
    Pack p;

    if (packs_read(state_fd, packs_name(name, stage, uid), &buf, &p, NULL) < 0)
        return e;
    e.has_pack = true;
    e.total = le64toh(p.header->total_data_bytes);
    for (uint32_t i = 0; i < le32toh(p.header->n_volumes); i++)
        search_volume(&p, p.volumes + i, path, &e);
    return e;
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

static const char *why(const Context *c, const ModelStage *g, const ModelStageFile *f,
                       const PackEntry *e, const char *path, double probability)
{
    _cleanup_free_ char *full = NULL;
    struct stat st;

    if (e->found)
        return probability < e->least + 1e-4 ? "in the pack, among its least likely files"
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
    if (S_ISREG(st.st_mode) && f->resident.n == 0 && f->assumed_resident.n == 0)
        return "it was opened, and none of its data was read";
    return "it did not fit into the budget, or the pack is older than the model";
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

static Table *stage_table(const Context *c, int state_fd, const Model *m, uint32_t file)
{
    static const Column columns[] = {
            {"STAGE", "stage", CELL_STRING},
            {"UID", "uid", CELL_COUNT},
            {"IN PACK", "in_pack", CELL_BOOLEAN},
            {"PROBABILITY", "probability", CELL_PROBABILITY},
            {"SESSIONS", "sessions_used", CELL_NUMBER},
            {"OF", "sessions", CELL_NUMBER},
            {"DATA", "pack_bytes", CELL_BYTES},
            {"OF PACK", "pack_total_bytes", CELL_BYTES},
            {"LEAST", "least_probability", CELL_PROBABILITY},
            {"WHY", "why", CELL_STRING},
            {"USED BY", "applications", CELL_STRING},
            {0},
    };
    usec_t now = clock_now(CLOCK_REALTIME);
    const char *path = m->files[file].path;
    Table *t = table_new(columns);

    for (size_t i = 0; i < m->n_stages; i++) {
        const ModelStage *g = &m->stages[i];
        const ModelStageFile *f = find_use(g, file);
        double probability = f ? decayed_sum_ratio(f->used, g->sessions) : 0;
        double sessions = model_sessions(m, g->stage, g->uid, now);
        _cleanup_free_ char *applications = NULL;
        PackEntry e = {.least = -1};

        if (!f && g->stage == STAGE_SESSION)
            continue;
        if (g->stage != STAGE_SESSION)
            e = search_pack(state_fd, g->stage, g->uid, path);
        applications = name_applications(m, g, file);
        table_row(t, stage_to_string(g->stage),
                  g->uid == UID_INVALID ? COUNT_UNKNOWN : (uint64_t)g->uid, (int)e.found,
                  e.found ? e.probability : probability, probability * sessions, sessions, e.bytes,
                  e.has_pack ? e.total : COUNT_UNKNOWN, e.has_pack ? e.least : -1,
                  g->stage == STAGE_SESSION ? "sessions have no pack: what comes next is predicted"
                                            : why(c, g, f, &e, path, probability),
                  applications);
    }
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

int explain_file(const Context *c, int state_fd, const char *name, uint64_t limit)
{
    static const Column columns[] = {
            {"File", "path", CELL_PATH},
            {"Why it is replayed or not", "stages", CELL_TABLE},
            {"Files that it uses as an application", "files", CELL_TABLE},
            {0},
    };
    _cleanup_free_ char *error = NULL;
    _cleanup_table_ Table *t = NULL;
    _cleanup_model_ Model *m = NULL;
    uint32_t file;
    int r = state_load_model_stages(state_fd, &m, &error);

    if (r == -ENOENT)
        return cli_error(r, "%s: nothing was learned yet (headstart learn)", c->state);
    if (r < 0)
        return cli_error(r, "%s/" STATE_MODEL ": %s", c->state, error ? error : error_text(r));
    file = strchr(name, '/') ? model_find_file(m, name) : find_application(m, name);
    if (file == MODEL_NONE)
        return cli_error(ENOENT, "%s: no recorded boot, login or session has used it", name);
    t = table_new(columns);
    table_row(t, m->files[file].path, stage_table(c, state_fd, m, file), use_table(m, file, limit));
    return cli_print_fields(c, t);
}
