/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Measures all predictors, with equal budgets, on habits that the mixture's own model does not
 * describe (util/regimes.h), for the figures of docs/predictors.md. Hit rates are means over the
 * seeds. The row "bound" shows the hits of a selection that contains nothing but objects of the
 * application that starts next, the smallest first. No selection has more hits within its budget.
 *
 *     measure-regimes [SEEDS [FIRST-SEED [REGIME,… [PREDICTOR,… [BUDGET,…]]]]]
 *
 * Without arguments it uses 3 seeds from 1 on, all regimes, all predictors and the budgets
 * 10,20,30,50, in percent of the size of all objects. */

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

static int run(const SimulateInput *in, const char *name, SimulateParameters *sp,
               SimulateReport *ret)
{
    _cleanup_predictor_ Predictor *p = NULL;
    int r = predictor_new(name, NULL, 1, &p);

    return r < 0 ? r : simulate(in, sp, p, ret);
}

static int measure(const SimulateInput *in, const char *name, double training,
                   const char *chosen_budgets, Row *row)
{
    for (unsigned b = 0; b < N_BUDGETS; b++)
        for (unsigned k = 0; k < SELECTIONS && is_budget_chosen(chosen_budgets, b); k++) {
            SimulateParameters sp;
            SimulateReport report;
            Cell *c = &row->cells[k][b];
            int r;

            simulate_parameters_init(&sp);
            sp.training = training;
            sp.budget_bytes = total_bytes(in) * budgets[b] / 100;
            sp.io_fixed_usec = IO_LATENCY_USEC;
            sp.io_bytes_per_sec = IO_BYTES_PER_SEC;
            if (k != FILLED)
                simulate_bound_waste(&sp, k == CYCLE ? 1 : WASTE);
            sp.horizon = horizons[MIN(b, 2U)];
            r = run(in, name, &sp, &report);
            if (r < 0)
                return r;
            c->hit += report.hit_rate;
            c->covered += report.coverage;
            c->waste += isnan(report.waste) ? 0 : report.waste;
            c->stall_msec += report.stall_usec / 1000 / (double)report.n_scored;
            if (k != FILLED)
                continue;
            if (b == 0) {
                row->log_loss += report.log_loss / (double)report.n_log_loss;
                row->next += report.next_log_loss / (double)report.n_scored;
            }
            for (unsigned i = 0; b < 3 && i < SIMULATE_BINS; i++) {
                row->bins[b][i].n += report.bins[i].n;
                row->bins[b][i].used += report.bins[i].used;
                row->bins[b][i].sum += report.bins[i].sum;
            }
        }
    return 0;
}

static void print_row(const char *name, const Row *row, unsigned n)
{
    for (unsigned k = 0; k < SELECTIONS; k++) {
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
 * by more than 0.1. */
static void print_bins(const Row *row, const char *regime)
{
    for (unsigned h = 0; h < 3; h++)
        for (unsigned i = 0; i < SIMULATE_BINS; i++) {
            const SimulateBin *b = &row->bins[h][i];
            double promised = b->n ? b->sum / (double)b->n : 0;
            double observed = b->n ? (double)b->used / (double)b->n : 0;

            if (b->n >= 200 && fabs(promised - observed) > 0.1)
                printf("    %s, %s: promised %.2f, observed %.2f (%llu)\n", regime,
                       horizon_names[h], promised, observed, (unsigned long long)b->n);
        }
}

int main(int argc, char *argv[])
{
    unsigned n_seeds = argc > 1 ? (unsigned)atoi(argv[1]) : 3;
    unsigned first = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    const char *only = argc > 3 && strcmp(argv[3], "all") != 0 ? argv[3] : NULL;
    const char *predictors = argc > 4 && strcmp(argv[4], "all") != 0 ? argv[4] : NULL;
    const char *chosen_budgets = argc > 5 ? argv[5] : NULL;

    for (Regime regime = 0; regime < _REGIME_MAX; regime++) {
        Row rows[N_MAX] = {0}, bound = {0};

        if (!chosen(only, regime_to_string(regime)))
            continue;
        printf("%s: budget", regime_to_string(regime));
        for (unsigned b = 0; b < N_BUDGETS; b++)
            printf(" %u%%", budgets[b]);
        printf("; waste bound %.0f %%; stall in ms per start\n", WASTE * 100);
        for (unsigned k = 0; k < n_seeds; k++) {
            _cleanup_simulate_input_ SimulateInput in = {0};
            double training;

            if (regime_draw(regime, first + k, &in, &training) < 0)
                return 1;
            add_bound(&in, training, &bound);
            for (size_t i = 0; predictor_name(i) && i < N_MAX; i++)
                if (chosen(predictors, predictor_name(i)) &&
                    measure(&in, predictor_name(i), training, chosen_budgets, &rows[i]) < 0)
                    return 1;
        }
        for (size_t i = 0; predictor_name(i) && i < N_MAX; i++) {
            if (!chosen(predictors, predictor_name(i)))
                continue;
            print_row(predictor_name(i), &rows[i], n_seeds);
            if (strcmp(predictor_name(i), "mixture") == 0)
                print_bins(&rows[i], regime_to_string(regime));
        }
        printf("%-15s", "bound");
        for (unsigned b = 0; b < N_BUDGETS; b++)
            printf(" %5.3f", bound.cells[FILLED][b].hit / n_seeds);
        printf("\n");
        fflush(stdout);
    }
    return 0;
}
