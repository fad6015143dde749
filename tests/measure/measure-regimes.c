/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Measures all predictors, with equal budgets, on habits that the mixture's own model does not
 * describe (util/regimes.h), for the figures of docs/predictors.md. Hit rates are means over the
 * seeds. The row "bound" shows the hits of a selection that contains nothing but objects of the
 * application that starts next, the smallest first. No selection has more hits within its budget.
 *
 *     measure-regimes [SEEDS [FIRST-SEED [REGIME,… [PREDICTOR,… [BUDGET,…]]]]]
 *
 * Without arguments it uses 3 seeds from 1 on, all regimes, all predictors and the budgets
 * 10,20,30,50, in percent of the size of all objects. With the budget "none" it prints the log loss
 * and the promises alone. The promises of the mixture are judged for 20 s, for ten minutes and for
 * the rest of the session, whatever the budgets.
 *
 * The selection of the session cycle is measured with the mixture alone.
 *
 * preload is measured with several half-lives. The row shows the one with the most hits: the mean
 * over the budgets, filled. */

#include "evaluate/predictor.h"
#include "util/regimes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned budgets[] = {10, 20, 30, 50};
#define N_BUDGETS ELEMENTSOF(budgets)
#define WASTE     0.15
/* A hard disk: reads of misses and reads ahead wait for one another. */
#define IO_LATENCY_USEC  8000
#define IO_BYTES_PER_SEC 80000000
#define N_MAX            32

/* The selections that are compared. */
enum {
    FILLED,  /* everything that fits into the budget */
    CYCLE,   /* that of the session cycle */
    BOUNDED, /* that of the session cycle, with a bound on waste */
    SELECTIONS,
};
static const char *const selection_names[SELECTIONS] = {"filled", "cycle", "bound"};

typedef struct Cell {
    double hit, waste, covered;
    double stall_msec; /* mean of the uses */
} Cell;

typedef struct Row {
    Cell cells[SELECTIONS][N_BUDGETS];
    double log_loss, next;
    SimulateBin bins[3][SIMULATE_BINS]; /* by horizon */
} Row;

/* A predictor, or preload with one of its half-lives. */
typedef struct Variant {
    const char *predictor, *label;
    usec_t halflife_usec; /* 0: the default */
} Variant;

static const Variant preloads[] = {
        {"preload", "preload, 1 h", USEC_PER_HOUR},
        {"preload", "preload, 1 d", 24 * USEC_PER_HOUR},
        {"preload", "preload, 1 w", 7 * 24 * USEC_PER_HOUR},
        {"preload", "preload, 4 w", 4 * 7 * 24 * USEC_PER_HOUR},
};

static const usec_t horizons[] = {20 * USEC_PER_SEC, 600 * USEC_PER_SEC, USEC_INFINITY};
static const char *const horizon_names[] = {"20 s", "10 min", "session"};

static bool chosen(const char *list, const char *name)
{
    size_t n = strlen(name);

    for (const char *x = list; x && (x = strstr(x, name)); x += n)
        if ((x == list || x[-1] == ',') && (x[n] == 0 || x[n] == ','))
            return true;
    return !list;
}

static bool is_budget_chosen(const char *list, unsigned b)
{
    char text[12];

    snprintf(text, sizeof(text), "%u", budgets[b]);
    return chosen(list, text);
}

static uint64_t total_bytes(const SimulateInput *in)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < in->n_objects; i++)
        sum += in->object_bytes[i];
    return sum;
}

static int compare_bytes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Returns how many of the item's objects fit into the budget, the smallest first. */
static uint32_t count_fitting(const SimulateInput *in, ItemParts item, uint64_t budget)
{
    _cleanup_free_ uint64_t *bytes = calloc(item.n + 1, sizeof(*bytes));
    uint32_t n = 0;

    if (!bytes)
        abort();
    for (uint32_t i = 0; i < item.n; i++)
        bytes[i] = in->object_bytes[in->parts[item.first + i]];
    qsort(bytes, item.n, sizeof(*bytes), compare_bytes);
    for (; n < item.n && bytes[n] <= budget; n++)
        budget -= bytes[n];
    return n;
}

/* Adds the bound of the hit rate for each budget. */
static void add_bound(const SimulateInput *in, double training, Row *row)
{
    for (unsigned b = 0; b < N_BUDGETS; b++) {
        uint64_t fit = 0, all = 0;

        for (size_t i = (size_t)(training * (double)in->n_events); i < in->n_events; i++) {
            const ItemParts *item = &in->items[in->events[i].item];

            if (in->events[i].kind != SIMULATE_START)
                continue;
            fit += count_fitting(in, *item, total_bytes(in) * budgets[b] / 100);
            all += item->n;
        }
        row->cells[FILLED][b].hit += (double)fit / (double)all;
    }
}

static int run(const SimulateInput *in, const Variant *v, SimulateParameters *sp,
               SimulateReport *ret)
{
    _cleanup_predictor_ Predictor *p = NULL;
    PredictorParameters parameters;
    int r = predictor_parameters_init(&parameters, v->predictor);

    if (v->halflife_usec > 0)
        parameters.halflife_usec = v->halflife_usec;
    if (r >= 0)
        r = predictor_new(v->predictor, &parameters, 1, &p);
    return r < 0 ? r : simulate(in, sp, p, ret);
}

/* Measures the hits of each budget and selection. */
static int measure_selections(const SimulateInput *in, const Variant *v, double training,
                              const char *chosen_budgets, Row *row)
{
    for (unsigned b = 0; b < N_BUDGETS; b++)
        for (unsigned k = 0; k < SELECTIONS && is_budget_chosen(chosen_budgets, b); k++) {
            SimulateParameters sp;
            SimulateReport report;
            Cell *c = &row->cells[k][b];
            int r;

            if (k == CYCLE && strcmp(v->predictor, "mixture") != 0)
                continue;
            simulate_parameters_init(&sp);
            sp.training = training;
            sp.budget_bytes = total_bytes(in) * budgets[b] / 100;
            sp.io_fixed_usec = IO_LATENCY_USEC;
            sp.io_bytes_per_sec = IO_BYTES_PER_SEC;
            if (k != FILLED)
                simulate_bound_waste(&sp, k == CYCLE ? 1 : WASTE);
            r = run(in, v, &sp, &report);
            if (r < 0)
                return r;
            c->hit += report.hit_rate;
            c->covered += report.coverage;
            c->waste += isnan(report.waste) ? 0 : report.waste;
            c->stall_msec += report.stall_usec / 1000 / (double)report.n_scored;
        }
    return 0;
}

static void add_bin(SimulateBin *sum, const SimulateBin *b)
{
    sum->n += b->n;
    sum->used += b->used;
    sum->sum += b->sum;
    sum->ee += b->ee;
    sum->en += b->en;
    sum->nn += b->nn;
}

/* Returns the standard error of the difference between the observed and the promised frequency.
 * Sessions count as independent. The bin must not be empty. */
static double standard_error(const SimulateBin *b)
{
    double n = (double)b->n, mean = ((double)b->used - b->sum) / n;

    return sqrt(fmax(b->ee - 2 * mean * b->en + mean * mean * b->nn, 0)) / n;
}

/* Measures the promises for each horizon, and the log loss for the first. Of predictors other than
 * the mixture, only the log loss. */
static int measure_promises(const SimulateInput *in, const Variant *v, double training, Row *row)
{
    unsigned n = strcmp(v->predictor, "mixture") == 0 ? ELEMENTSOF(horizons) : 1;

    for (unsigned h = 0; h < n; h++) {
        SimulateParameters sp;
        SimulateReport report;
        int r;

        simulate_parameters_init(&sp);
        sp.training = training;
        sp.horizon = horizons[h];
        r = run(in, v, &sp, &report);
        if (r < 0)
            return r;
        if (h == 0) {
            row->log_loss += report.log_loss / (double)report.n_log_loss;
            row->next += report.next_log_loss / (double)report.n_scored;
        }
        for (unsigned i = 0; i < SIMULATE_BINS; i++)
            add_bin(&row->bins[h][i], &report.bins[i]);
    }
    return 0;
}

static int measure(const SimulateInput *in, const Variant *v, double training,
                   const char *chosen_budgets, Row *row)
{
    int r = measure_selections(in, v, training, chosen_budgets, row);

    return r < 0 ? r : measure_promises(in, v, training, row);
}

/* Lists the chosen predictors and variants. Returns their number. */
static size_t list_variants(const char *predictors, Variant *ret)
{
    size_t n = 0;

    for (size_t i = 0; predictor_name(i) && n + ELEMENTSOF(preloads) <= N_MAX; i++) {
        const char *name = predictor_name(i);

        if (!chosen(predictors, name))
            continue;
        if (strcmp(name, "preload") != 0) {
            ret[n++] = (Variant){name, name, 0};
            continue;
        }
        memcpy(&ret[n], preloads, sizeof(preloads));
        n += ELEMENTSOF(preloads);
    }
    return n;
}

/* Returns true if the budget filled gives another variant of the same predictor more hits. */
static bool is_surpassed(const Variant *variants, const Row *rows, size_t n, size_t i)
{
    double sums[2];

    for (size_t j = 0; j < n; j++) {
        if (j == i || strcmp(variants[j].predictor, variants[i].predictor) != 0)
            continue;
        sums[0] = sums[1] = 0;
        for (unsigned b = 0; b < N_BUDGETS; b++) {
            sums[0] += rows[i].cells[FILLED][b].hit;
            sums[1] += rows[j].cells[FILLED][b].hit;
        }
        if (sums[1] > sums[0] || (sums[1] == sums[0] && j < i))
            return true;
    }
    return false;
}

static void print_row(const char *name, const Row *row, unsigned n)
{
    for (unsigned k = 0; k < SELECTIONS; k++) {
        if (k == CYCLE && strcmp(name, "mixture") != 0)
            continue;
        printf("%-14s %-6s hit", k == 0 ? name : "", selection_names[k]);
        for (unsigned b = 0; b < N_BUDGETS; b++)
            printf(" %5.3f", row->cells[k][b].hit / n);
        printf(" | waste");
        for (unsigned b = 0; b < N_BUDGETS; b++)
            printf(" %5.3f", row->cells[k][b].waste / n);
        printf(" | stall");
        for (unsigned b = 0; b < N_BUDGETS; b++)
            printf(" %5.0f", row->cells[k][b].stall_msec / n);
        printf("\n");
    }
    printf("%-14s loss %6.3f next %5.3f\n", "", row->log_loss / n, row->next / n);
}

/* Prints the bins of at least 200 guesses in which the promised and the observed frequency differ
 * by more than 0.1, with the standard error of this difference. */
static void print_bins(const Row *row, const char *regime)
{
    for (unsigned h = 0; h < 3; h++)
        for (unsigned i = 0; i < SIMULATE_BINS; i++) {
            const SimulateBin *b = &row->bins[h][i];
            double promised = b->n ? b->sum / (double)b->n : 0;
            double observed = b->n ? (double)b->used / (double)b->n : 0;

            if (b->n >= 200 && fabs(promised - observed) > 0.1)
                printf("    %s, %s: promised %.2f, observed %.2f, error %.2f (%llu)\n", regime,
                       horizon_names[h], promised, observed, standard_error(b),
                       (unsigned long long)b->n);
        }
}

static int measure_regime(Regime regime, unsigned n_seeds, unsigned first, const Variant *variants,
                          size_t n_variants, const char *chosen_budgets)
{
    Row rows[N_MAX] = {0}, bound = {0};

    printf("%s: budget", regime_to_string(regime));
    for (unsigned b = 0; b < N_BUDGETS; b++)
        printf(" %u%%", budgets[b]);
    printf("; waste bound %.0f %%; stall in ms per start\n", WASTE * 100);
    for (unsigned k = 0; k < n_seeds; k++) {
        _cleanup_simulate_input_ SimulateInput in = {0};
        double training;
        int r = regime_draw(regime, first + k, &in, &training);

        if (r < 0)
            return r;
        add_bound(&in, training, &bound);
        for (size_t i = 0; r >= 0 && i < n_variants; i++)
            r = measure(&in, &variants[i], training, chosen_budgets, &rows[i]);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < n_variants; i++) {
        if (is_surpassed(variants, rows, n_variants, i))
            continue;
        print_row(variants[i].label, &rows[i], n_seeds);
        if (strcmp(variants[i].predictor, "mixture") == 0)
            print_bins(&rows[i], regime_to_string(regime));
    }
    printf("%-15s", "bound");
    for (unsigned b = 0; b < N_BUDGETS; b++)
        printf(" %5.3f", bound.cells[FILLED][b].hit / n_seeds);
    printf("\n");
    fflush(stdout);
    return 0;
}

int main(int argc, char *argv[])
{
    unsigned n_seeds = argc > 1 ? (unsigned)atoi(argv[1]) : 3;
    unsigned first = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    const char *only = argc > 3 && strcmp(argv[3], "all") != 0 ? argv[3] : NULL;
    const char *predictors = argc > 4 && strcmp(argv[4], "all") != 0 ? argv[4] : NULL;
    const char *chosen_budgets = argc > 5 ? argv[5] : NULL;
    Variant variants[N_MAX];
    size_t n = list_variants(predictors, variants);

    for (Regime regime = 0; regime < _REGIME_MAX; regime++)
        if (chosen(only, regime_to_string(regime)) &&
            measure_regime(regime, n_seeds, first, variants, n, chosen_budgets) < 0)
            return 1;
    return 0;
}
