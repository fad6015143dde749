/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the judge found, as tables and as JSON. Both are made of the same figures. */

#include "evaluate/evaluate.h"

#include <math.h>

/* Sums of the report made means; negative where nothing was counted, which prints as unknown. */
typedef struct Figures {
    const char *name, *source;
    const SimulateReport *report;
    double log_loss, next_log_loss;
    usec_t lead, io; /* means of one read: before it was used; how long it takes */
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
    /* Empty files are there at once, which says nothing. */
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
    n = MAX(n, e->reports[i].n_scored); /* of all the same */
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

static Table *settings_table(const Evaluation *e)
{
    const SimulateParameters *p = &e->parameters;
    bool files = e->level == TRACE_LEVEL_FILES, own = p->budget_bytes != UINT64_MAX;
    char cache[64], budget[64];
    Table *t = table_new();

    format_size(cache, sizeof(cache), p->cache_unit, p->cache_size);
    format_size(budget, sizeof(budget), own ? CACHE_BYTES : p->cache_unit,
                own ? p->budget_bytes : p->cache_size);
    table_column(t, "Traces", "n_traces", CELL_COUNT);
    table_column(t, "First recorded", "first_realtime_usec", CELL_REALTIME);
    table_column(t, "Last recorded", "last_realtime_usec", CELL_REALTIME);
    table_column(t, files ? "Files" : "Applications", "n_items", CELL_COUNT);
    table_column(t, files ? "Files opened" : "Applications started", "n_uses", CELL_COUNT);
    table_column(t, "Judged", "n_scored", CELL_COUNT);
    table_column(t, "Bytes of all", "object_bytes", CELL_BYTES);
    table_column(t, "Cache", "cache", CELL_STRING);
    table_column(t, "Budget", "budget", CELL_STRING);
    table_column(t, "Order", "order", CELL_STRING);
    table_column(t, "Waste bound", "maximum_waste", CELL_PROBABILITY);
    table_column(t, "Grace", "grace_usec", CELL_TIMESPAN);
    table_column(t, "Habits of", "habits_users", CELL_COUNT);
    table_column(t, "Seed of habits", "habits_seed", CELL_COUNT);
    table_column(t, "Best single guess", "best_guess", CELL_PROBABILITY);
    table_row(t, (uint64_t)e->n_traces, e->first_realtime, e->last_realtime,
              (uint64_t)e->input.n_items, e->n_uses, n_scored(e), e->object_bytes, cache, budget,
              order_name(p), p->maximum_waste < 1 ? p->maximum_waste : -1.0,
              p->grace > 0 ? p->grace : COUNT_UNKNOWN,
              e->draw ? (uint64_t)e->habits_users : COUNT_UNKNOWN,
              e->draw ? e->habits_seed : COUNT_UNKNOWN, e->draw ? e->best_guess : -1.0);
    return t;
}

static Table *foreseen_table(const Evaluation *e)
{
    Table *t = table_new();

    table_column(t, "PREDICTOR", "name", CELL_STRING);
    table_column(t, "HIT", "hit_rate", CELL_PROBABILITY);
    table_column(t, "CACHE HIT", "cache_hit_rate", CELL_PROBABILITY);
    table_column(t, "ACCURACY", "accuracy", CELL_PROBABILITY);
    table_column(t, "COVERAGE", "coverage", CELL_PROBABILITY);
    table_column(t, "FIRST", "first_right", CELL_PROBABILITY);
    table_column(t, "LOG LOSS", "log_loss", CELL_PRECISE);
    table_column(t, "NEXT", "next_log_loss", CELL_PRECISE);
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
    Table *t = table_new();

    table_column(t, "PREDICTOR", "name", CELL_STRING);
    table_column(t, "READ", "read_bytes", CELL_BYTES);
    table_column(t, "WASTED", "wasted_bytes", CELL_BYTES);
    table_column(t, "WASTE", "waste", CELL_PROBABILITY);
    table_column(t, "LEAD", "lead_usec", CELL_TIMESPAN);
    table_column(t, "I/O", "io_usec", CELL_TIMESPAN);
    table_column(t, "IN TIME", "in_time", CELL_PROBABILITY);
    table_column(t, "STATE", "state_bytes", CELL_BYTES);
    table_column(t, "OBSERVE", "observe_usec", CELL_NUMBER);
    table_column(t, "PREDICT", "predict_usec", CELL_NUMBER);
    FOR_EACH_CHOSEN(e, i)
    {
        Figures f = figures_of(e, i);
        const SimulateReport *r = f.report;

        table_row(t, f.name, r->read_bytes, r->wasted_bytes, r->waste, f.lead, f.io, f.in_time,
                  (uint64_t)r->state_bytes, f.observe_usec, f.predict_usec);
    }
    return t;
}

/* The tenths in which anything was promised; of one predictor, or of all that were chosen. */
static Table *reliability_table(const Evaluation *e)
{
    Table *t = table_new();

    table_column(t, "PREDICTOR", "name", CELL_STRING);
    table_column(t, "FROM", "from", CELL_PROBABILITY);
    table_column(t, "TO", "to", CELL_PROBABILITY);
    table_column(t, "GUESSES", "n", CELL_COUNT);
    table_column(t, "PROMISED", "promised", CELL_PROBABILITY);
    table_column(t, "CAME", "came", CELL_PROBABILITY);
    FOR_EACH_CHOSEN(e, i)
    for (unsigned k = 0; k < SIMULATE_BINS; k++) {
        const SimulateBin *b = &e->reports[i].bins[k];

        if (b->n > 0)
            table_row(t, evaluate_name(e, i), (double)k / SIMULATE_BINS,
                      (double)(k + 1) / SIMULATE_BINS, b->n, mean(b->sum, b->n),
                      mean((double)b->came, b->n));
    }
    return t;
}

static int print_text(const Evaluation *e)
{
    _cleanup_table_ Table *settings = settings_table(e), *foreseen = foreseen_table(e),
                          *cost = cost_table(e),
                          *reliability = e->reliability ? reliability_table(e) : NULL;
    int r = table_print_fields(settings);

    if (r >= 0)
        r = table_print_section("What was foreseen", foreseen, table_n_rows(foreseen));
    if (r >= 0)
        r = table_print_section("What it cost", cost, table_n_rows(cost));
    if (r >= 0 && e->reliability && table_n_rows(reliability) == 0)
        puts("\nReliability: nothing was promised.");
    else if (r >= 0 && e->reliability)
        r = table_print_section("Reliability: what was promised, and what came", reliability,
                                table_n_rows(reliability));
    return r;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static json_object *real(double v)
{
    return v >= 0 ? json_object_new_double(v) : NULL; /* not NaN either */
}

static json_object *count(uint64_t v)
{
    return v == COUNT_UNKNOWN ? NULL : json_object_new_uint64(v);
}

static json_object *bins_to_json(const SimulateReport *r)
{
    json_object *a = json_object_new_array();

    for (unsigned k = 0; k < SIMULATE_BINS; k++) {
        const SimulateBin *b = &r->bins[k];
        json_object *o = json_object_new_object();

        json_object_object_add(o, "from", real((double)k / SIMULATE_BINS));
        json_object_object_add(o, "to", real((double)(k + 1) / SIMULATE_BINS));
        json_object_object_add(o, "n", count(b->n));
        json_object_object_add(o, "n_came", count(b->came));
        json_object_object_add(o, "promised", real(mean(b->sum, b->n)));
        json_object_object_add(o, "came", real(mean((double)b->came, b->n)));
        json_object_array_add(a, o);
    }
    return a;
}

static json_object *figures_to_json(const Figures *f)
{
    const SimulateReport *r = f->report;
    json_object *o = json_object_new_object();

    json_object_object_add(o, "name", json_object_new_string(f->name));
    json_object_object_add(o, "source", json_object_new_string(f->source));
    json_object_object_add(o, "hit_rate", real(r->hit_rate));
    json_object_object_add(o, "cache_hit_rate", real(r->cache_hit_rate));
    json_object_object_add(o, "accuracy", real(r->accuracy));
    json_object_object_add(o, "coverage", real(r->coverage));
    json_object_object_add(o, "first_right", real(r->first_right));
    json_object_object_add(o, "n_scored", count(r->n_scored));
    json_object_object_add(o, "n_objects", count(r->n_objects));
    json_object_object_add(o, "n_selected", count(r->n_selected));
    json_object_object_add(o, "n_cached", count(r->n_cached));
    json_object_object_add(o, "n_late", count(r->n_late));
    json_object_object_add(o, "log_loss", real(f->log_loss));
    json_object_object_add(o, "n_log_loss", count(r->n_log_loss));
    json_object_object_add(o, "next_log_loss", real(f->next_log_loss));
    json_object_object_add(o, "n_reads", count(r->n_reads));
    json_object_object_add(o, "n_reads_used", count(r->n_reads_used));
    json_object_object_add(o, "read_bytes", count(r->read_bytes));
    json_object_object_add(o, "wasted_bytes", count(r->wasted_bytes));
    json_object_object_add(o, "waste", real(r->waste));
    json_object_object_add(o, "lead_usec", count(f->lead));
    json_object_object_add(o, "io_usec", count(f->io));
    json_object_object_add(o, "in_time", real(f->in_time));
    json_object_object_add(o, "state_bytes", count(r->state_bytes));
    json_object_object_add(o, "n_observed", count(r->n_observed));
    json_object_object_add(o, "n_predicted", count(r->n_predicted));
    json_object_object_add(o, "observe_usec", real(f->observe_usec));
    json_object_object_add(o, "predict_usec", real(f->predict_usec));
    json_object_object_add(o, "reliability", bins_to_json(r));
    return o;
}

static json_object *habits_to_json(const Evaluation *e)
{
    json_object *o = json_object_new_object();

    json_object_object_add(o, "seed", json_object_new_uint64(e->habits_seed));
    json_object_object_add(o, "n_users", json_object_new_int((int)e->habits_users));
    json_object_object_add(o, "n_sessions", json_object_new_uint64(e->habits_sessions));
    json_object_object_add(o, "best_guess", json_object_new_double(e->best_guess));
    return o;
}

static int print_json(const Evaluation *e)
{
    static const char *const units[] = {
            [CACHE_UNLIMITED] = "unlimited", [CACHE_FILES] = "files", [CACHE_BYTES] = "bytes"};
    const SimulateParameters *p = &e->parameters;
    json_object *o = json_object_new_object(), *a = json_object_new_array();

    json_object_object_add(
            o, "level",
            json_object_new_string(e->level == TRACE_LEVEL_FILES ? "files" : "applications"));
    json_object_object_add(o, "n_traces", count(e->n_traces));
    json_object_object_add(o, "first_realtime_usec", count(e->first_realtime));
    json_object_object_add(o, "last_realtime_usec", count(e->last_realtime));
    json_object_object_add(o, "n_items", count(e->input.n_items));
    json_object_object_add(o, "n_objects", count(e->input.n_objects));
    json_object_object_add(o, "object_bytes", count(e->object_bytes));
    json_object_object_add(o, "n_events", count(e->input.n_events));
    json_object_object_add(o, "n_uses", count(e->n_uses));
    json_object_object_add(o, "cache_unit", json_object_new_string(units[p->cache_unit]));
    json_object_object_add(o, "cache_size",
                           p->cache_unit == CACHE_UNLIMITED ? NULL : count(p->cache_size));
    json_object_object_add(o, "budget_bytes", count(p->budget_bytes));
    json_object_object_add(o, "training", real(p->training));
    json_object_object_add(o, "order", json_object_new_string(order_name(p)));
    json_object_object_add(o, "maximum_waste", real(p->maximum_waste));
    json_object_object_add(o, "horizon_usec", count(p->horizon));
    json_object_object_add(o, "cycle_usec", count(p->cycle));
    json_object_object_add(o, "grace_usec", count(p->grace));
    json_object_object_add(o, "io_latency_usec", count(p->io_fixed_usec));
    json_object_object_add(o, "io_bytes_per_sec", count(p->io_bytes_per_sec));
    json_object_object_add(o, "seed", json_object_new_uint64(e->seed));
    json_object_object_add(o, "n_scored", count(n_scored(e)));
    json_object_object_add(o, "habits", e->draw ? habits_to_json(e) : NULL);
    FOR_EACH_CHOSEN(e, i)
    {
        Figures f = figures_of(e, i);

        json_object_array_add(a, figures_to_json(&f));
    }
    json_object_object_add(o, "predictors", a);
    return output_json(e->c->json, o);
}

int evaluate_print(const Evaluation *e)
{
    int r = e->c->json != JSON_OFF ? print_json(e) : print_text(e);

    return r < 0 ? cli_error(r, "cannot print: %m") : 0;
}
