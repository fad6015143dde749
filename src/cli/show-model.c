/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A model in words, or whole as JSON. */

#include "base/clock.h"
#include "cli/show.h"

#include <string.h>

static Table *summary_table(const Model *m, const char *path)
{
    Table *s = table_new();

    table_column(s, "Model", "file", CELL_PATH);
    table_column(s, "Half-life", "half_life_usec", CELL_TIMESPAN);
    table_column(s, "Traces learned", "n_learned", CELL_COUNT);
    table_column(s, "Last recorded", "last_realtime_usec", CELL_REALTIME);
    table_column(s, "Files known", "n_files", CELL_COUNT);
    table_row(s, path, m->halflife, (uint64_t)m->n_learned,
              m->n_learned ? m->learned[m->n_learned - 1].start_realtime : COUNT_UNKNOWN,
              (uint64_t)m->n_files);
    return s;
}

/* Bytes that a session is expected to need: each byte by its probability. */
static double expected_bytes(const Segments *s, DecayedSum truth)
{
    double sum = 0;

    for (size_t i = 0; i < s->n; i++)
        sum += (double)(s->segments[i].end - s->segments[i].start) *
               decayed_sum_ratio(s->segments[i].weight, truth);
    return sum;
}

/* Of the resident part and of the use itself. */
static double expected_data(const ModelStage *g, const ModelStageFile *f)
{
    return expected_bytes(&f->resident, f->truth) * decayed_sum_ratio(f->used, g->sessions);
}

static uint64_t mean_usec(DecayedSum sum_msec, DecayedSum n)
{
    double w = decayed_sum_value(n);

    return w > 0 ? (uint64_t)(decayed_sum_value(sum_msec) / w * (double)USEC_PER_MSEC)
                 : COUNT_UNKNOWN;
}

static Table *stage_table(const Model *m)
{
    usec_t now = clock_now(CLOCK_REALTIME);
    Table *s = table_new();

    table_column(s, "STAGE", "stage", CELL_STRING);
    table_column(s, "USER", "uid", CELL_COUNT);
    table_column(s, "SESSIONS", "sessions", CELL_NUMBER);
    table_column(s, "TAKES", "duration_usec", CELL_TIMESPAN);
    table_column(s, "APPLICATIONS", "n_applications", CELL_COUNT);
    table_column(s, "FILES", "n_files", CELL_COUNT);
    table_column(s, "DATA", "expected_data_bytes", CELL_BYTES);
    table_column(s, "METADATA", "expected_metadata_bytes", CELL_BYTES);
    for (size_t i = 0; i < m->n_stages; i++) {
        const ModelStage *g = m->stages + i;
        double data = 0, metadata = 0;

        for (size_t k = 0; k < g->n_files; k++)
            data += expected_data(g, g->files + k);
        for (size_t k = 0; k < g->n_metadata; k++)
            metadata += expected_bytes(&g->metadata[k].ranges, g->metadata[k].truth);
        table_row(s, stage_to_string(g->stage),
                  g->uid == UID_INVALID ? COUNT_UNKNOWN : (uint64_t)g->uid,
                  model_sessions(m, g->stage, g->uid, now), mean_usec(g->duration, g->sessions),
                  (uint64_t)g->n_applications, (uint64_t)g->n_files, (uint64_t)data,
                  (uint64_t)metadata);
    }
    return s;
}

/* --- the long tables -------------------------------------------------------------------------- */

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

/* limit 0: all of them, in the model's order. */
static Table *application_table(const Model *m, const ModelStage *g, uint64_t limit)
{
    _cleanup_free_ Ranked *ranked = calloc(MAX(g->n_applications, (size_t)1), sizeof(Ranked));
    Table *s = table_new();
    size_t n = 0;

    if (!ranked)
        return table_free(s);
    for (size_t i = 0; i < g->n_applications; i++)
        ranked[i] =
                (Ranked){(uint32_t)i, decayed_sum_ratio(g->applications[i].active, g->sessions), 0};
    for (size_t i = 0; i < g->n_uses; i++)
        ranked[g->uses[i].application].second += 1;
    for (size_t i = 0; i < g->n_applications; i++) /* opens of unknowns are no application */
        if (g->applications[i].file != MODEL_NONE)
            ranked[n++] = ranked[i];
    qsort(ranked, n, sizeof(Ranked), by_rank);

    table_column(s, "APPLICATION", "path", CELL_PATH);
    table_column(s, "ACTIVE", "probability", CELL_PROBABILITY);
    table_column(s, "FILES", "n_files", CELL_COUNT);
    for (size_t i = 0; i < n && (limit == 0 || i < limit); i++)
        table_row(s, application_path(m, g->applications + ranked[i].index), ranked[i].rank,
                  (uint64_t)ranked[i].second);
    return s;
}

static Table *file_table(const Model *m, const ModelStage *g, uint64_t limit)
{
    _cleanup_free_ Ranked *ranked = calloc(MAX(g->n_files, (size_t)1), sizeof(Ranked));
    Table *s = table_new();

    if (!ranked)
        return table_free(s);
    for (size_t i = 0; i < g->n_files; i++)
        ranked[i] = (Ranked){(uint32_t)i, expected_data(g, g->files + i),
                             decayed_sum_ratio(g->files[i].used, g->sessions)};
    qsort(ranked, g->n_files, sizeof(Ranked), by_rank);

    table_column(s, "FILE", "path", CELL_PATH);
    table_column(s, "USED", "probability", CELL_PROBABILITY);
    table_column(s, "AFTER", "first_use_usec", CELL_TIMESPAN);
    table_column(s, "DATA", "expected_data_bytes", CELL_BYTES);
    for (size_t i = 0; i < g->n_files && (limit == 0 || i < limit); i++) {
        const ModelStageFile *f = g->files + ranked[i].index;

        table_row(s, m->files[f->file].path, decayed_sum_ratio(f->used, g->sessions),
                  mean_usec(f->first_use, f->used), (uint64_t)ranked[i].rank);
    }
    return s;
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* [[start, end, probability], …] */
static json_object *segments_to_json(const Segments *s, DecayedSum truth)
{
    json_object *a = json_object_new_array();

    for (size_t i = 0; a && i < s->n; i++) {
        json_object *k = json_object_new_array();

        json_object_array_add(k, json_object_new_uint64(s->segments[i].start));
        json_object_array_add(k, json_object_new_uint64(s->segments[i].end));
        json_object_array_add(
                k, json_object_new_double(decayed_sum_ratio(s->segments[i].weight, truth)));
        json_object_array_add(a, k);
    }
    return a;
}

static json_object *files_to_json(const Model *m, const ModelStage *g)
{
    json_object *files = json_object_new_array();

    for (size_t i = 0; files && i < g->n_files; i++) {
        const ModelStageFile *f = g->files + i;
        uint64_t first = mean_usec(f->first_use, f->used);
        json_object *o = json_object_new_object();

        json_object_object_add(o, "path", output_json_string(m->files[f->file].path));
        json_object_object_add(o, "directory",
                               json_object_new_boolean(m->files[f->file].directory));
        json_object_object_add(o, "probability",
                               json_object_new_double(decayed_sum_ratio(f->used, g->sessions)));
        json_object_object_add(o, "first_use_usec",
                               first == COUNT_UNKNOWN ? NULL : json_object_new_uint64(first));
        json_object_object_add(o, "maps", segments_to_json(&f->resident, f->truth));
        json_object_array_add(files, o);
    }
    return files;
}

static json_object *metadata_to_json(const ModelStage *g)
{
    json_object *a = json_object_new_array();

    for (size_t i = 0; a && i < g->n_metadata; i++) {
        json_object *o = json_object_new_object();

        json_object_object_add(o, "uuid", output_json_string(g->metadata[i].uuid));
        json_object_object_add(o, "ranges",
                               segments_to_json(&g->metadata[i].ranges, g->metadata[i].truth));
        json_object_array_add(a, o);
    }
    return a;
}

static int model_json(const Context *c, const Model *m, const Table *summary, const Table *stages)
{
    json_object *o = table_fields_to_json(summary), *s = table_to_json(stages);

    if (!o || !s) {
        json_object_put(o);
        json_object_put(s);
        return -ENOMEM;
    }
    for (size_t i = 0; i < m->n_stages; i++) {
        const ModelStage *g = m->stages + i;
        json_object *k = json_object_array_get_idx(s, i);
        _cleanup_table_ Table *applications = application_table(m, g, 0);

        json_object_object_add(k, "applications", table_to_json(applications));
        json_object_object_add(k, "files", files_to_json(m, g));
        json_object_object_add(k, "metadata", metadata_to_json(g));
    }
    json_object_object_add(o, "kind", json_object_new_string("model"));
    json_object_object_add(o, "stages", s);
    return output_json(c->json, o);
}

/* --- both ------------------------------------------------------------------------------------- */

static int show_stage(const Model *m, const ModelStage *g, uint64_t limit)
{
    _cleanup_table_ Table *applications = application_table(m, g, limit),
                          *files = file_table(m, g, limit);
    char heading[128];
    size_t n = 0;
    int r;

    for (size_t i = 0; i < g->n_applications; i++)
        n += g->applications[i].file != MODEL_NONE;
    snprintf(heading, sizeof(heading), "Applications in %s, the likeliest first",
             stage_to_string(g->stage));
    r = table_print_section(heading, applications, n);
    snprintf(heading, sizeof(heading), "Files in %s, the most data first",
             stage_to_string(g->stage));
    return r < 0 ? r : table_print_section(heading, files, g->n_files);
}

int show_model(const Context *c, const char *path, const Model *m, uint64_t limit)
{
    _cleanup_table_ Table *summary = summary_table(m, path), *stages = stage_table(m);
    int r;

    if (c->json != JSON_OFF)
        r = model_json(c, m, summary, stages);
    else {
        r = table_print_fields(summary);
        if (r == 0)
            r = table_print_section("Stages", stages, m->n_stages);
        for (size_t i = 0; r == 0 && i < m->n_stages; i++)
            r = show_stage(m, m->stages + i, limit);
    }
    return r < 0 ? cli_error(r, "cannot print: %m") : 0;
}
