/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The results as tables and as JSON. Both come from the same figures. */

#include "evaluate/evaluate.h"

#include <math.h>

/* The sums of the report as means. If nothing was counted, a mean is negative or, for `lead` and
 * `io`, COUNT_UNKNOWN. Such a mean is printed as unknown. */
typedef struct Figures {
    const char *name, *source;
    const SimulateReport *report;
    double log_loss, next_log_loss;
    usec_t stall;    /* mean per use */
    usec_t lead, io; /* means per read: time from the read to its use; duration of the read */
    double in_time;
    double observe_usec, predict_usec;
} Figures;

const char *evaluate_name(const Evaluation *e, size_t i)
{
    size_t n = 0;

    while (predictor_name(n))
        n++;
    return i == n && e->draw ? "oracle" : predictor_name(i);
}

static double mean(double sum, uint64_t n)
{
    return n > 0 ? sum / (double)n : -1;
}

static usec_t mean_usec(double sum, uint64_t n)
{
    return n > 0 ? (usec_t)(sum / (double)n) : COUNT_UNKNOWN;
}

static Figures figures_of(const Evaluation *e, size_t predictor)
{
    const SimulateReport *r = &e->reports[predictor];
    const SimulateParameters *p = &e->parameters;
    double io = (double)p->io_fixed_usec * (double)r->n_reads;
    /* Empty files take no time to read. If no byte was read, there is no lead time. */
    uint64_t n_used = r->read_bytes > 0 ? r->n_reads_used : 0;

    if (p->io_bytes_per_sec > 0)
        io += (double)r->read_bytes * 1e6 / (double)p->io_bytes_per_sec;
    return (Figures){
            .name = evaluate_name(e, predictor),
            .source = predictor_name(predictor) ? predictor_source(predictor)
                                                : "knows the true probabilities",
            .report = r,
            .log_loss = mean(r->log_loss, r->n_log_loss),
            .next_log_loss = mean(r->next_log_loss, r->n_scored),
            .stall = mean_usec(r->stall_usec, r->n_scored),
            .lead = mean_usec(r->lead_usec, n_used),
            .io = mean_usec(io, r->n_reads),
            .in_time = mean((double)r->n_in_time, n_used),
            .observe_usec = p->clock_nsec ? mean((double)r->observe_nsec / 1e3, r->n_observed) : -1,
            .predict_usec =
                    p->clock_nsec ? mean((double)r->predict_nsec / 1e3, r->n_predicted) : -1,
    };
}

#define FOR_EACH_CHOSEN(e, i)                    \
    for (size_t i = 0; evaluate_name(e, i); i++) \
        if ((e)->chosen[i])

static uint64_t n_scored(const Evaluation *e)
{
    uint64_t n = 0;

    FOR_EACH_CHOSEN(e, i)
    n = MAX(n, e->reports[i].n_scored); /* the same for all predictors */
    return n;
}

/* --- text ------------------------------------------------------------------------------------- */

static void format_size(char *buf, size_t size, CacheUnit unit, uint64_t n)
{
    if (unit == CACHE_UNLIMITED)
        snprintf(buf, size, "unlimited");
    else if (unit == CACHE_FILES)
        snprintf(buf, size, "%llu files", (unsigned long long)n);
    else
        format_bytes(buf, size, n);
}

static const char *order_name(const SimulateParameters *p)
{
    return p->seek_bytes > 0 ? "worth" : "probability";
}

static Table *predictions_table(const Evaluation *e)
{
    static const Column columns[] = {
            {"PREDICTOR", NULL, CELL_STRING},
            {"HIT", NULL, CELL_PROBABILITY},
            {"CACHE HIT", NULL, CELL_PROBABILITY},
            {"ACCURACY", NULL, CELL_PROBABILITY},
            {"COVERAGE", NULL, CELL_PROBABILITY},
            {"FIRST", NULL, CELL_PROBABILITY},
            {"LOG LOSS", NULL, CELL_PRECISE},
            {"NEXT", NULL, CELL_PRECISE},
            {0},
    };
    Table *t = table_new(columns);

    FOR_EACH_CHOSEN(e, i)
    {
        Figures f = figures_of(e, i);
        const SimulateReport *r = f.report;

        table_row(t, f.name, r->hit_rate, r->cache_hit_rate, r->accuracy, r->coverage,
                  r->first_right, f.log_loss, f.next_log_loss);
    }
    return t;
}

static Table *cost_table(const Evaluation *e)
{
    static const Column columns[] = {
            {"PREDICTOR", NULL, CELL_STRING},    {"READ", NULL, CELL_BYTES},
            {"WASTED", NULL, CELL_BYTES},        {"WASTE", NULL, CELL_PROBABILITY},
            {"LEAD", NULL, CELL_TIMESPAN},       {"I/O", NULL, CELL_TIMESPAN},
            {"IN TIME", NULL, CELL_PROBABILITY}, {"STALL", NULL, CELL_TIMESPAN},
            {"STATE", NULL, CELL_BYTES},         {"OBSERVE", NULL, CELL_NUMBER},
            {"PREDICT", NULL, CELL_NUMBER},      {0},
    };
    Table *t = table_new(columns);

    FOR_EACH_CHOSEN(e, i)
    {
        Figures f = figures_of(e, i);
        const SimulateReport *r = f.report;

        table_row(t, f.name, r->read_bytes, r->wasted_bytes, r->waste, f.lead, f.io, f.in_time,
                  f.stall, (uint64_t)r->state_bytes, f.observe_usec, f.predict_usec);
    }
    return t;
}

/* Makes the table with a row for each tenth of the probability in which a chosen predictor made
 * guesses. */
static Table *reliability_table(const Evaluation *e)
{
    static const Column columns[] = {
            {"PREDICTOR", NULL, CELL_STRING},
            {"FROM", NULL, CELL_PROBABILITY},
            {"TO", NULL, CELL_PROBABILITY},
            {"GUESSES", NULL, CELL_COUNT},
            {"PREDICTED", NULL, CELL_PROBABILITY},
            {"OBSERVED", NULL, CELL_PROBABILITY},
            {0},
    };
    Table *t = table_new(columns);

    FOR_EACH_CHOSEN(e, i)
    for (unsigned k = 0; k < SIMULATE_BINS; k++) {
        const SimulateBin *b = &e->reports[i].bins[k];

        if (b->n > 0)
            table_row(t, evaluate_name(e, i), (double)k / SIMULATE_BINS,
                      (double)(k + 1) / SIMULATE_BINS, b->n, mean(b->sum, b->n),
                      mean((double)b->used, b->n));
    }
    return t;
}

static Table *settings_table(const Evaluation *e)
{
    const SimulateParameters *p = &e->parameters;
    bool files = e->level == TRACE_LEVEL_FILES, own = p->budget_bytes != UINT64_MAX;
    const Column columns[] = {
            {"Traces", NULL, CELL_COUNT},
            {"First recorded", NULL, CELL_REALTIME},
            {"Last recorded", NULL, CELL_REALTIME},
            {files ? "Files" : "Applications", NULL, CELL_COUNT},
            {files ? "Files opened" : "Applications started", NULL, CELL_COUNT},
            {"Scored", NULL, CELL_COUNT},
            {"Total size", NULL, CELL_BYTES},
            {"Cache", NULL, CELL_STRING},
            {"Budget", NULL, CELL_STRING},
            {"Order", NULL, CELL_STRING},
            {"Waste bound", NULL, CELL_PROBABILITY},
            {"Grace", NULL, CELL_TIMESPAN},
            {"Habits of", NULL, CELL_COUNT},
            {"Seed of habits", NULL, CELL_COUNT},
            {"Best single guess", NULL, CELL_PROBABILITY},
            {"Predictions", NULL, CELL_TABLE},
            {"Cost", NULL, CELL_TABLE},
            {"Reliability: predicted and observed frequency", NULL, CELL_TABLE},
            {0},
    };
    char cache[64], budget[64];
    Table *t = table_new(columns);

    format_size(cache, sizeof(cache), p->cache_unit, p->cache_size);
    format_size(budget, sizeof(budget), own ? CACHE_BYTES : p->cache_unit,
                own ? p->budget_bytes : p->cache_size);
    table_row(t, (uint64_t)e->n_traces, e->first_realtime, e->last_realtime,
              (uint64_t)e->input.n_items, e->n_uses, n_scored(e), e->object_bytes, cache, budget,
              order_name(p), p->selection.maximum_waste < 1 ? p->selection.maximum_waste : -1.0,
              p->grace > 0 ? p->grace : COUNT_UNKNOWN,
              e->draw ? (uint64_t)e->habits_users : COUNT_UNKNOWN,
              e->draw ? e->habits_seed : COUNT_UNKNOWN, e->draw ? e->best_guess : -1.0,
              predictions_table(e), cost_table(e), e->reliability ? reliability_table(e) : NULL);
    return t;
}

static bool has_guesses(const Evaluation *e)
{
    FOR_EACH_CHOSEN(e, i)
    for (unsigned k = 0; k < SIMULATE_BINS; k++)
        if (e->reports[i].bins[k].n > 0)
            return true;
    return false;
}

static int print_text(const Evaluation *e)
{
    _cleanup_table_ Table *t = settings_table(e);
    int r = cli_print_fields(e->c, t);

    if (r >= 0 && e->reliability && !has_guesses(e))
        puts("\nReliability: there are no guesses.");
    return r;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static Table *bins_table(const SimulateReport *r)
{
    static const Column columns[] = {
            {NULL, "from", CELL_PROBABILITY},
            {NULL, "to", CELL_PROBABILITY},
            {NULL, "n", CELL_COUNT},
            {NULL, "n_observed", CELL_COUNT},
            {NULL, "predicted", CELL_PROBABILITY},
            {NULL, "observed", CELL_PROBABILITY},
            {0},
    };
    Table *t = table_new(columns);

    for (unsigned k = 0; k < SIMULATE_BINS; k++) {
        const SimulateBin *b = &r->bins[k];

        table_row(t, (double)k / SIMULATE_BINS, (double)(k + 1) / SIMULATE_BINS, b->n, b->used,
                  mean(b->sum, b->n), mean((double)b->used, b->n));
    }
    return t;
}

static Table *predictor_table(const Evaluation *e)
{
    static const Column columns[] = {
            {NULL, "name", CELL_STRING},
            {NULL, "source", CELL_STRING},
            {NULL, "hit_rate", CELL_PROBABILITY},
            {NULL, "cache_hit_rate", CELL_PROBABILITY},
            {NULL, "accuracy", CELL_PROBABILITY},
            {NULL, "coverage", CELL_PROBABILITY},
            {NULL, "first_right", CELL_PROBABILITY},
            {NULL, "n_scored", CELL_COUNT},
            {NULL, "n_objects", CELL_COUNT},
            {NULL, "n_selected", CELL_COUNT},
            {NULL, "n_cached", CELL_COUNT},
            {NULL, "n_late", CELL_COUNT},
            {NULL, "log_loss", CELL_PRECISE},
            {NULL, "n_log_loss", CELL_COUNT},
            {NULL, "next_log_loss", CELL_PRECISE},
            {NULL, "n_reads", CELL_COUNT},
            {NULL, "n_reads_used", CELL_COUNT},
            {NULL, "read_bytes", CELL_BYTES},
            {NULL, "wasted_bytes", CELL_BYTES},
            {NULL, "waste", CELL_PROBABILITY},
            {NULL, "lead_usec", CELL_TIMESPAN},
            {NULL, "io_usec", CELL_TIMESPAN},
            {NULL, "in_time", CELL_PROBABILITY},
            {NULL, "stall_usec", CELL_TIMESPAN},
            {NULL, "state_bytes", CELL_BYTES},
            {NULL, "n_observed", CELL_COUNT},
            {NULL, "n_predicted", CELL_COUNT},
            {NULL, "observe_usec", CELL_NUMBER},
            {NULL, "predict_usec", CELL_NUMBER},
            {NULL, "reliability", CELL_TABLE},
            {0},
    };
    Table *t = table_new(columns);

    FOR_EACH_CHOSEN(e, i)
    {
        Figures f = figures_of(e, i);
        const SimulateReport *r = f.report;

        table_row(t, f.name, f.source, r->hit_rate, r->cache_hit_rate, r->accuracy, r->coverage,
                  r->first_right, r->n_scored, r->n_objects, r->n_selected, r->n_cached, r->n_late,
                  f.log_loss, r->n_log_loss, f.next_log_loss, r->n_reads, r->n_reads_used,
                  r->read_bytes, r->wasted_bytes, r->waste, f.lead, f.io, f.in_time, f.stall,
                  (uint64_t)r->state_bytes, r->n_observed, r->n_predicted, f.observe_usec,
                  f.predict_usec, bins_table(r));
    }
    return t;
}

static json_object *habits_to_json(const Evaluation *e)
{
    static const Column columns[] = {
            {NULL, "seed", CELL_COUNT},
            {NULL, "n_users", CELL_COUNT},
            {NULL, "n_sessions", CELL_COUNT},
            {NULL, "best_guess", CELL_PROBABILITY},
            {0},
    };
    _cleanup_table_ Table *t = table_new(columns);

    table_row(t, e->habits_seed, (uint64_t)e->habits_users, (uint64_t)e->habits_sessions,
              e->best_guess);
    return table_fields_to_json(t);
}

static int print_json(const Evaluation *e)
{
    static const Column columns[] = {
            {NULL, "level", CELL_STRING},
            {NULL, "n_traces", CELL_COUNT},
            {NULL, "first_realtime_usec", CELL_REALTIME},
            {NULL, "last_realtime_usec", CELL_REALTIME},
            {NULL, "n_items", CELL_COUNT},
            {NULL, "n_objects", CELL_COUNT},
            {NULL, "object_bytes", CELL_BYTES},
            {NULL, "n_events", CELL_COUNT},
            {NULL, "n_uses", CELL_COUNT},
            {NULL, "cache_unit", CELL_STRING},
            {NULL, "cache_size", CELL_COUNT},
            {NULL, "budget_bytes", CELL_BYTES},
            {NULL, "training", CELL_PROBABILITY},
            {NULL, "order", CELL_STRING},
            {NULL, "maximum_waste", CELL_PROBABILITY},
            {NULL, "horizon_usec", CELL_TIMESPAN},
            {NULL, "cycle_usec", CELL_TIMESPAN},
            {NULL, "grace_usec", CELL_TIMESPAN},
            {NULL, "io_latency_usec", CELL_TIMESPAN},
            {NULL, "io_bytes_per_sec", CELL_BYTES},
            {NULL, "seed", CELL_COUNT},
            {NULL, "n_scored", CELL_COUNT},
            {NULL, "habits", CELL_JSON},
            {NULL, "predictors", CELL_TABLE},
            {0},
    };
    static const char *const units[] = {
            [CACHE_UNLIMITED] = "unlimited", [CACHE_FILES] = "files", [CACHE_BYTES] = "bytes"};
    const SimulateParameters *p = &e->parameters;

    return cli_print_json(
            e->c, columns, e->level == TRACE_LEVEL_FILES ? "files" : "applications",
            (uint64_t)e->n_traces, e->first_realtime, e->last_realtime, (uint64_t)e->input.n_items,
            (uint64_t)e->input.n_objects, e->object_bytes, (uint64_t)e->input.n_events, e->n_uses,
            units[p->cache_unit],
            p->cache_unit == CACHE_UNLIMITED ? COUNT_UNKNOWN : (uint64_t)p->cache_size,
            p->budget_bytes, p->training, order_name(p), p->selection.maximum_waste, p->horizon,
            p->cycle, p->grace, (usec_t)p->io_fixed_usec, (uint64_t)p->io_bytes_per_sec, e->seed,
            n_scored(e), e->draw ? habits_to_json(e) : NULL, predictor_table(e));
}

int evaluate_print(const Evaluation *e)
{
    return e->c->json == JSON_OFF ? print_text(e) : print_json(e);
}
