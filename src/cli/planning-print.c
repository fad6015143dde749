/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prints the results of `headstart plan`. */

#include "cli/planning.h"

#include "base/json-util.h"

Table *planning_table(void)
{
    static const Column columns[] = {
            {"STAGE", "stage", CELL_STRING},       {"USER", "uid", CELL_COUNT},
            {"POLICY", "policy", CELL_STRING},     {"FILES", "n_files", CELL_COUNT},
            {"DIRS", "n_directories", CELL_COUNT}, {"RANGES", "n_data", CELL_COUNT},
            {"DATA", "data_bytes", CELL_BYTES},    {"METADATA", "metadata_bytes", CELL_BYTES},
            {"GAPS", "gap_bytes", CELL_BYTES},     {"TAKES", "estimated_usec", CELL_TIMESPAN},
            {"REASON", "reason", CELL_STRING},     {"HOLD", "hold_usec", CELL_TIMESPAN},
            {NULL, "bin_usec", CELL_TIMESPAN},     {"PREDICTED", NULL, CELL_STRING},
            {NULL, "predicted_usec", CELL_JSON},   {NULL, "predicts_waits", CELL_BOOLEAN},
            {"SKIPPED", "skipped", CELL_STRING},   {0},
    };

    return table_new(columns);
}

/* Writes, for example, "3 gone, 12 duplicate". */
static void skipped_text(const PlanSummary *s, char *buf, size_t size)
{
    size_t n = 0;

    buf[0] = 0;
    for (PlanSkip k = 0; k < _PLAN_SKIP_MAX && n < size; k++)
        if (s->n_skipped[k] > 0)
            n += (size_t)snprintf(buf + n, size - n, "%s%llu %s", n ? ", " : "",
                                  (unsigned long long)s->n_skipped[k], plan_skip_to_string(k));
}

/* Writes, for example, "off 2.7s, gate 790ms", or "waits: off 1.9s, gate 300ms" if it is not known
 * how long the stage computes. */
static void predictions_text(const PackContent *c, char *buf, size_t size)
{
    char time[FORMAT_TIMESPAN_MAX];
    size_t n = 0;

    buf[0] = 0;
    for (Policy k = 0; k < _POLICY_MAX && n < size; k++)
        if (c->predicted_usec[k] > 0)
            n += (size_t)snprintf(buf + n, size - n, "%s%s %s",
                                  n                   ? ", "
                                  : c->predicts_waits ? "waits: "
                                                      : "",
                                  policy_to_string(k),
                                  format_timespan(time, sizeof(time), c->predicted_usec[k]));
}

static json_object *predictions_to_json(const PackContent *c)
{
    _cleanup_json_ json_object *o = json_object_new_object();

    for (Policy k = 0; k < _POLICY_MAX; k++)
        if (c->predicted_usec[k] > 0 &&
            !json_add_member(o, policy_to_string(k), json_object_new_uint64(c->predicted_usec[k])))
            return NULL;
    return TAKE_PTR(o);
}

void planning_add_summary(Planning *p, uint32_t uid, const PackContent *content,
                          const PlanSummary *s)
{
    char skipped[256], predictions[256];

    predictions_text(content, predictions, sizeof(predictions));
    skipped_text(s, skipped, sizeof(skipped));
    table_row(p->summaries, stage_to_string(content->stage),
              uid == UID_INVALID ? COUNT_UNKNOWN : (uint64_t)uid, policy_to_string(content->policy),
              s->n_files, s->n_directories, s->n_data_ranges, s->data_bytes, s->metadata_bytes,
              s->gap_bytes, s->estimated_usec, policy_reason_to_string(content->reason),
              content->hold_usec > 0 ? content->hold_usec : USEC_INFINITY,
              content->bin_usec > 0 ? content->bin_usec : USEC_INFINITY,
              *predictions ? predictions : NULL, predictions_to_json(content),
              (int)content->predicts_waits, *skipped ? skipped : NULL);
}

/* Returns a table of the operations of replay, in their order. */
static Table *operation_table(const PackContent *content)
{
    static const Column columns[] = {
            {"OPERATION", "operation", CELL_STRING},
            {"PLACE", "physical", CELL_COUNT},
            {"OFFSET", "offset", CELL_COUNT},
            {"LENGTH", "length", CELL_COUNT},
            {"LIKELY", "probability", CELL_PROBABILITY},
            {"MOUNT", "mountpoint", CELL_STRING},
            {"PATH", "path", CELL_PATH},
            {0},
    };
    Table *t = table_new(columns);

    for (size_t i = 0; i < content->n_volumes; i++) {
        const PackContentVolume *g = content->volumes + i;

        for (size_t k = 0; k < g->n_metadata; k++)
            table_row(t, g->metadata[k].item.reader == METADATA_OF_DEVICE ? "metadata" : "item",
                      g->metadata[k].offset, g->metadata[k].offset, g->metadata[k].length,
                      g->metadata[k].probability, g->mountpoint, NULL);
        for (size_t k = 0; k < g->n_files; k++)
            table_row(t, "open", COUNT_UNKNOWN, COUNT_UNKNOWN, COUNT_UNKNOWN,
                      g->files[k].probability, g->mountpoint, g->files[k].path);
        for (size_t k = 0; k < g->n_data; k++) {
            const PlacedRange *d = g->data + k;

            table_row(t, "read", d->physical, d->offset, d->length, d->probability, g->mountpoint,
                      g->files[d->file].path);
        }
    }
    return t;
}

int planning_print_operations(Planning *p, const char *what, const PackContent *content)
{
    _cleanup_table_ Table *t = operation_table(content);
    int r = 0;

    if (p->c->json != JSON_OFF)
        r = json_add_member(p->operations, what, table_to_json(t)) ? 0 : -ENOMEM;
    else {
        printf("%s:\n", what);
        r = table_print(t);
        putchar('\n');
    }
    return r < 0 ? cli_error(r, "cannot print: %m") : 0;
}

int planning_print(Planning *p)
{
    static const Column columns[] = {
            {NULL, "budget_bytes", CELL_BYTES},
            {NULL, "stages", CELL_TABLE},
            {0},
    };
    _cleanup_table_ Table *t = NULL;

    if (p->c->json == JSON_OFF)
        return p->c->quiet ? 0 : cli_print(p->c, p->summaries);
    t = table_new(columns);
    if (p->dry_run)
        table_column(t, NULL, "operations", CELL_JSON);
    table_row(t, p->budget_bytes, TAKE_PTR(p->summaries),
              p->dry_run ? TAKE_PTR(p->operations) : NULL);
    return cli_print_fields(p->c, t);
}
