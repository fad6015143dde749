/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart show MODEL: a summary as text, or all applications, files and metadata ranges of each
 * stage as JSON. */

#include "base/clock.h"
#include "base/json-util.h"
#include "view/show.h"

/* Returns the expected number of bytes of these ranges that a session needs: the sum of the
 * probabilities of all their bytes. */
static double expected_bytes(const WeightedRanges *s, DecayedSum observed)
{
    double sum = 0;

    for (size_t i = 0; i < s->n; i++)
        sum += (double)s->ranges[i].length * decayed_sum_ratio(s->ranges[i].weight, observed);
    return sum;
}

/* Returns the expected number of bytes of a file: P(opened) times the expected resident bytes. */
static double expected_data(const ModelStage *g, const ModelStageFile *f)
{
    const ModelResidency *best = model_best_residency(f);

    return expected_bytes(&best->ranges, best->sessions) * decayed_sum_ratio(f->used, g->sessions) *
           model_opened_share(f);
}

static uint64_t mean_usec(DecayedSum times, DecayedSum n)
{
    return decayed_sum_is_zero(n) ? COUNT_UNKNOWN : decayed_sum_mean_usec(times, n);
}

/* --- tables: their first `limit` rows (0: all) ------------------------------------------------ */

typedef struct Ranked {
    uint32_t index;
    double rank, second;
} Ranked;

static int by_rank(const void *a, const void *b)
{
    const Ranked *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank > y->rank ? -1 : 1;
    if (x->second != y->second)
        return x->second > y->second ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static const char *application_path(const Model *m, const ModelApplication *a)
{
    return a->file == MODEL_NONE ? NULL : m->files[a->file].path;
}

/* Makes the table of the applications, the most probable first. Unknown applications are left
 * out. */
static Table *application_table(const Model *m, const ModelStage *g, uint64_t limit)
{
    static const Column columns[] = {
            {"APPLICATION", "path", CELL_PATH},
            {"ACTIVE", "probability", CELL_PROBABILITY},
            {"FILES", "n_files", CELL_COUNT},
            {0},
    };
    _cleanup_free_ Ranked *ranked = calloc(MAX(g->n_applications, (size_t)1), sizeof(Ranked));
    Table *t = table_new(columns);
    size_t n = 0;

    if (!ranked)
        return table_free(t);
    for (size_t i = 0; i < g->n_applications; i++)
        ranked[i] =
                (Ranked){(uint32_t)i, decayed_sum_ratio(g->applications[i].active, g->sessions), 0};
    for (size_t i = 0; i < g->n_uses; i++)
        ranked[g->uses[i].application].second += 1;
    for (size_t i = 0; i < g->n_applications; i++)
        if (g->applications[i].file != MODEL_NONE)
            ranked[n++] = ranked[i];
    qsort(ranked, n, sizeof(Ranked), by_rank);
    for (size_t i = 0; i < n && (limit == 0 || i < limit); i++)
        table_row(t, application_path(m, g->applications + ranked[i].index), ranked[i].rank,
                  (uint64_t)ranked[i].second);
    table_set_heading(t, "Applications in %s, the likeliest first", stage_to_string(g->stage));
    table_set_total(t, n);
    return t;
}

/* Makes the table of the files, those with the most expected data first. */
static Table *largest_files(const Model *m, const ModelStage *g, uint64_t limit)
{
    static const Column columns[] = {
            {"FILE", "path", CELL_PATH},
            {"USED", "probability", CELL_PROBABILITY},
            {"AFTER", "first_use_usec", CELL_TIMESPAN},
            {"DATA", "expected_data_bytes", CELL_BYTES},
            {0},
    };
    _cleanup_free_ Ranked *ranked = calloc(MAX(g->n_files, (size_t)1), sizeof(Ranked));
    Table *t = table_new(columns);

    if (!ranked)
        return table_free(t);
    for (size_t i = 0; i < g->n_files; i++)
        ranked[i] = (Ranked){(uint32_t)i, expected_data(g, g->files + i),
                             decayed_sum_ratio(g->files[i].used, g->sessions)};
    qsort(ranked, g->n_files, sizeof(Ranked), by_rank);
    for (size_t i = 0; i < g->n_files && (limit == 0 || i < limit); i++) {
        const ModelStageFile *f = g->files + ranked[i].index;

        table_row(t, m->files[f->file].path, decayed_sum_ratio(f->used, g->sessions),
                  (uint64_t)model_first_use(f), (uint64_t)ranked[i].rank);
    }
    table_set_heading(t, "Files in %s, the most data first", stage_to_string(g->stage));
    table_set_total(t, g->n_files);
    return t;
}

/* --- all of it, in the model's order ---------------------------------------------------------- */

/* Returns [[start, end, probability], …]. Start and end are in bytes. */
static json_object *ranges_to_json(const WeightedRanges *s, DecayedSum observed)
{
    json_object *a = json_object_new_array();

    for (size_t i = 0; a && i < s->n; i++) {
        json_object *k = json_object_new_array();

        json_add_item(k, json_object_new_uint64(s->ranges[i].offset));
        json_add_item(k, json_object_new_uint64(weighted_range_end(&s->ranges[i])));
        json_add_item(k, json_object_new_double(decayed_sum_ratio(s->ranges[i].weight, observed)));
        json_add_item(a, k);
    }
    return a;
}

static Table *file_table(const Model *m, const ModelStage *g)
{
    static const Column columns[] = {
            {NULL, "path", CELL_PATH},
            {NULL, "directory", CELL_BOOLEAN},
            {NULL, "probability", CELL_PROBABILITY},
            {NULL, "first_use_usec", CELL_TIMESPAN},
            {NULL, "maps", CELL_JSON},
            {0},
    };
    Table *t = table_new(columns);

    for (size_t i = 0; i < g->n_files; i++) {
        const ModelStageFile *f = g->files + i;
        const ModelResidency *best = model_best_residency(f);

        table_row(t, m->files[f->file].path, (int)m->files[f->file].directory,
                  decayed_sum_ratio(f->used, g->sessions), (uint64_t)model_first_use(f),
                  ranges_to_json(&best->ranges, best->sessions));
    }
    return t;
}

static Table *metadata_table(const ModelStage *g)
{
    static const Column columns[] = {
            {NULL, "uuid", CELL_STRING},
            {NULL, "application", CELL_STRING},
            {NULL, "assumed", CELL_BOOLEAN},
            {NULL, "ranges", CELL_JSON},
            {0},
    };
    Table *t = table_new(columns);

    for (size_t i = 0; i < g->n_metadata; i++)
        table_row(t, g->metadata[i].uuid, g->metadata[i].application, (int)g->metadata[i].assumed,
                  ranges_to_json(&g->metadata[i].ranges, g->metadata[i].observed));
    return t;
}

static Table *stage_table(const Model *m, bool whole, uint64_t limit)
{
    static const Column columns[] = {
            {"STAGE", "stage", CELL_STRING},
            {"USER", "uid", CELL_COUNT},
            {"SESSIONS", "sessions", CELL_NUMBER},
            {"TAKES", "duration_usec", CELL_TIMESPAN},
            {"APPLICATIONS", "n_applications", CELL_COUNT},
            {"FILES", "n_files", CELL_COUNT},
            {"DATA", "expected_data_bytes", CELL_BYTES},
            {"METADATA", "expected_metadata_bytes", CELL_BYTES},
            {"Applications", "applications", CELL_TABLE},
            {NULL, "files", CELL_TABLE},
            {NULL, "metadata", CELL_TABLE},
            {"Files", NULL, CELL_TABLE},
            {0},
    };
    usec_t now = clock_now(CLOCK_REALTIME);
    Table *t = table_new(columns);

    for (size_t i = 0; i < m->n_stages; i++) {
        const ModelStage *g = m->stages + i;
        double data = 0, metadata = 0, assumed = 0;

        for (size_t k = 0; k < g->n_files; k++)
            data += expected_data(g, g->files + k);
        for (size_t k = 0; k < g->n_metadata; k++)
            if (!g->metadata[k].application)
                *(g->metadata[k].assumed ? &assumed : &metadata) +=
                        expected_bytes(&g->metadata[k].ranges, g->metadata[k].observed);
        table_row(t, stage_to_string(g->stage),
                  g->uid == UID_INVALID ? COUNT_UNKNOWN : (uint64_t)g->uid,
                  model_sessions(m, g, now), mean_usec(g->duration, g->sessions),
                  (uint64_t)g->n_applications, (uint64_t)g->n_files, (uint64_t)data,
                  (uint64_t)(metadata > 0 ? metadata : assumed),
                  application_table(m, g, whole ? 0 : limit), whole ? file_table(m, g) : NULL,
                  whole ? metadata_table(g) : NULL, whole ? NULL : largest_files(m, g, limit));
    }
    return t;
}

int show_model(const Context *c, const char *path, const Model *m, uint64_t limit)
{
    static const Column columns[] = {
            {"Model", "file", CELL_PATH},
            {"Half-life", "halflife_usec", CELL_TIMESPAN},
            {"Traces learned", "n_learned", CELL_COUNT},
            {"Last recorded", "last_realtime_usec", CELL_REALTIME},
            {"Files known", "n_files", CELL_COUNT},
            {NULL, "kind", CELL_STRING},
            {"Stages", "stages", CELL_TABLE},
            {0},
    };
    _cleanup_table_ Table *t = table_new(columns);

    table_row(t, path, m->halflife_usec, (uint64_t)m->n_learned,
              m->n_learned ? m->learned[m->n_learned - 1].start_realtime : COUNT_UNKNOWN,
              (uint64_t)m->n_files, "model", stage_table(m, c->json != JSON_OFF, limit));
    return cli_print_fields(c, t);
}
