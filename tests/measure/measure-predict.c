/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Simulates every predictor on habits drawn from seeds, for the figures of docs/predictors.md.
 *
 *     measure-predict [SEEDS [FIRST-SEED [SESSIONS]]]      default 8 1 60
 *
 * With `now` as FIRST-SEED, the first seed is the present time in seconds. */

#include "evaluate/habits.h"
#include "evaluate/predictor.h"
#include "evaluate/random.h"
#include "evaluate/simulate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TRAINING 0.55
#define WASTE    0.15
#define N_MAX    24

/* A line of the table: a predictor and its settings. */
typedef struct Line {
    const char *name; /* of the predictor; "oracle": it knows the true probabilities */
    const char *remark;
    bool unbounded; /* no bound on waste: fills the budget, as the thesis does */
    MixtureCombination combination;
    bool blind; /* the mixture does not know the users */
} Line;

static const Line lines[] = {
        {"oracle", "", false, 0, false},
        {"oracle", "budget filled", true, 0, false},
        {"mixture", "", false, 0, false},
        {"mixture", "users not told apart", false, 0, true},
        {"mixture", "product", false, MIXTURE_PRODUCT, false},
        {"preload", "budget filled", true, 0, false},
        {"preload", "", false, 0, false},
        {"naive", "budget filled", true, 0, false},
        {"naive", "", false, 0, false},
        {"last-successor", "", false, 0, false},
        {"2-gram+", "", false, 0, false},
        {"1-5-gram+", "", false, 0, false},
        {"association", "", false, 0, false},
        {"hybrid", "", false, 0, false},
        {"graph", "", false, 0, false},
        {"pcm", "", false, 0, false},
        {"epcm", "", false, 0, false},
};

/* Sums over the seeds, except `least` and `most_waste`, which are extremes. */
typedef struct Sums {
    double hit, of_oracle, least, cache, coverage, first, waste, most_waste, read_mb, log_loss,
            next;
    double state;
    unsigned n;
    SimulateBin bins[SIMULATE_BINS];
} Sums;

static int new_predictor(const Line *line, const Habits *h, Predictor **ret)
{
    PredictorParameters pp;

    if (strcmp(line->name, "oracle") == 0)
        return habits_oracle_new(h, 200, 7, ret);
    if (predictor_parameters_init(&pp, line->name) < 0)
        return -ENOENT;
    pp.combination = line->combination;
    pp.mixture_users = !line->blind;
    return predictor_new(line->name, &pp, 1, ret);
}

static int simulate_line(const Line *line, const Habits *h, const SimulateInput *in,
                         uint64_t budget, usec_t horizon, SimulateReport *ret)
{
    _cleanup_predictor_ Predictor *p = NULL;
    SimulateParameters sp;
    int r = new_predictor(line, h, &p);

    if (r < 0)
        return r;
    simulate_parameters_init(&sp);
    sp.training = TRAINING;
    sp.budget_bytes = budget;
    sp.grace = 10 * USEC_PER_SEC; /* not scored: in this time the desktop's own processes start */
    if (!line->unbounded)
        simulate_bound_waste(&sp, WASTE);
    sp.horizon = horizon;
    return simulate(in, &sp, p, ret);
}

static void add_report(Sums *s, const SimulateReport *r, double oracle)
{
    s->hit += r->hit_rate;
    s->of_oracle += r->hit_rate / oracle;
    s->least = s->n == 0 ? r->hit_rate / oracle : MIN(s->least, r->hit_rate / oracle);
    s->cache += r->cache_hit_rate;
    s->coverage += r->coverage;
    s->first += r->first_right;
    s->waste += isnan(r->waste) ? 0 : r->waste;
    s->most_waste = MAX(s->most_waste, isnan(r->waste) ? 0 : r->waste);
    s->read_mb += (double)r->read_bytes / 1e6;
    s->log_loss += r->log_loss / (double)r->n_log_loss;
    s->next += r->next_log_loss / (double)r->n_scored;
    s->state += (double)r->state_bytes;
    for (unsigned i = 0; i < SIMULATE_BINS; i++) {
        s->bins[i].n += r->bins[i].n;
        s->bins[i].used += r->bins[i].used;
        s->bins[i].sum += r->bins[i].sum;
    }
    s->n++;
}

/* Runs one scenario for all seeds. `user`: UID_INVALID means both users. */
static int scenario(const char *title, uint32_t user, unsigned n_seeds, uint64_t first,
                    unsigned n_sessions)
{
    Sums sums[ELEMENTSOF(lines)] = {{0}};
    double best_guess = 0;

    for (unsigned k = 0; k < n_seeds; k++) {
        _cleanup_habits_ Habits *h = NULL;
        _cleanup_simulate_input_ SimulateInput in = {0};
        HabitsParameters hp;
        double oracle = NAN;

        habits_parameters_init(&hp);
        if (habits_new(&hp, first + k, &h) < 0 ||
            habits_sessions(h, user, n_sessions, ~(first + k), &in) < 0)
            return -EIO;
        best_guess += habits_best_guess(h) / n_seeds;
        for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
            SimulateReport r;
            int e = simulate_line(&lines[i], h, &in, habits_union_bytes(h) / 2, 20 * USEC_PER_SEC,
                                  &r);

            if (e < 0)
                return e;
            if (i == 0)
                oracle = r.hit_rate;
            add_report(&sums[i], &r, oracle);
        }
        fprintf(stderr, "\r%s: seed %u of %u", title, k + 1, n_seeds);
    }
    fprintf(stderr, "\n");
    printf("\n%s, budget 50 %% of the union: %u seeds from %llu, %u sessions, best single guess right %.2f\n\n",
           title, n_seeds, (unsigned long long)first, n_sessions, best_guess);
    printf("| %s | hits | of the oracle's (least) | whole | first guess | waste (most) | read MB | "
           "log loss, 20 s | next | state KiB |\n",
           title);
    printf("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
        const Sums *s = &sums[i];
        double n = s->n;

        printf("| %s%s%s | %.3f | %.3f (%.3f) | %.2f | %.2f | %.3f (%.3f) | %.0f | %.3f | %.2f | "
               "%.1f |\n",
               lines[i].name, *lines[i].remark ? ", " : "", lines[i].remark, s->hit / n,
               s->of_oracle / n, s->least, s->coverage / n, s->first / n, s->waste / n,
               s->most_waste, s->read_mb / n, s->log_loss / n, s->next / n, s->state / n / 1024);
    }
    return 0;
}

/* Prints the reliability of predictors with an infinite horizon, so that probabilities of all sizes
 * occur. */
static int reliability(unsigned n_seeds, uint64_t first, unsigned n_sessions)
{
    static const Line which[] = {
            {"oracle", "", false, 0, false},
            {"mixture", "", false, 0, false},
            {"mixture", "product", false, MIXTURE_PRODUCT, false},
            {"preload", "", false, 0, false},
    };
    Sums sums[ELEMENTSOF(which)] = {{0}};

    for (unsigned k = 0; k < n_seeds; k++) {
        _cleanup_habits_ Habits *h = NULL;
        _cleanup_simulate_input_ SimulateInput in = {0};
        HabitsParameters hp;

        habits_parameters_init(&hp);
        if (habits_new(&hp, first + k, &h) < 0 ||
            habits_sessions(h, UID_INVALID, n_sessions, ~(first + k), &in) < 0)
            return -EIO;
        for (size_t i = 0; i < ELEMENTSOF(which); i++) {
            SimulateReport r;
            int e = simulate_line(&which[i], h, &in, habits_union_bytes(h) / 2, USEC_INFINITY, &r);

            if (e < 0)
                return e;
            add_report(&sums[i], &r, r.hit_rate);
        }
    }
    printf("\nUsed before the session ends, two users: predicted and observed (guesses)\n\n| predicted |");
    for (size_t i = 0; i < ELEMENTSOF(which); i++)
        printf(" %s%s%s |", which[i].name, *which[i].remark ? ", " : "", which[i].remark);
    printf("\n| --- | --- | --- | --- | --- |\n");
    for (unsigned b = 0; b < SIMULATE_BINS; b++) {
        printf("| %.1f-%.1f |", b / 10.0, (b + 1) / 10.0);
        for (size_t i = 0; i < ELEMENTSOF(which); i++) {
            const SimulateBin *bin = &sums[i].bins[b];

            if (bin->n == 0)
                printf(" - |");
            else
                printf(" %.2f: %.2f (%llu) |", bin->sum / (double)bin->n,
                       (double)bin->used / (double)bin->n, (unsigned long long)bin->n);
        }
        printf("\n");
    }
    return 0;
}

/* Makes a sequence of accesses to files in the order in which applications open them at their
 * start. The papers on the prediction of files used such sequences. */
static int file_trace(const SimulateInput *in, uint64_t seed, SimulateInput *ret)
{
    Random random = {seed};
    uint32_t x;

    for (size_t o = 0; o < in->n_objects; o++) {
        uint32_t object;
        int r = simulate_add_object(ret, in->object_bytes[o], &object);

        if (r >= 0)
            r = simulate_add_item(ret, &object, 1, &x);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < in->n_events; i++) {
        SimulateEvent e = in->events[i];

        if (e.kind == SIMULATE_BEGIN || e.kind == SIMULATE_END) {
            e.item = 0;
            if (simulate_add_event(ret, &e) < 0)
                return -ENOMEM;
        }
        if (e.kind != SIMULATE_START)
            continue;
        e.kind = SIMULATE_ACCESS;
        for (uint32_t j = 0; j < in->items[in->events[i].item].n; j++) {
            if (random_below(&random, 20) == 0)
                continue; /* a start does not open every file */
            e.item = in->parts[in->items[in->events[i].item].first + j];
            e.at += 1000 + random_below(&random, 20000);
            if (simulate_add_event(ret, &e) < 0)
                return -ENOMEM;
        }
    }
    return 0;
}

/* Repeats figure 3 of Rutt and Parthasarathy, with a cache of 70 files and 55 % training. */
static int files(unsigned n_seeds, uint64_t first, unsigned n_sessions)
{
    static const struct {
        const char *name, *paper;
    } which[] = {
            {"lru", "63"},         {"last-successor", "84"}, {"2-gram+", "87"}, {"1-5-gram+", "90"},
            {"association", "90"}, {"hybrid", "91"},         {"graph", NULL},   {"pcm", NULL},
            {"epcm", NULL},
    };
    double hit[ELEMENTSOF(which)] = {0}, right[ELEMENTSOF(which)] = {0},
           accuracy[ELEMENTSOF(which)] = {0}, state[ELEMENTSOF(which)] = {0},
           late[ELEMENTSOF(which)] = {0};

    for (unsigned k = 0; k < n_seeds; k++) {
        _cleanup_habits_ Habits *h = NULL;
        _cleanup_simulate_input_ SimulateInput in = {0}, accesses = {0};
        HabitsParameters hp;

        habits_parameters_init(&hp);
        if (habits_new(&hp, first + k, &h) < 0 ||
            habits_sessions(h, 0, n_sessions / 4, ~(first + k), &in) < 0 ||
            file_trace(&in, first + k, &accesses) < 0)
            return -EIO;
        for (size_t i = 0; i < 2 * ELEMENTSOF(which); i++) {
            size_t j = i % ELEMENTSOF(which);
            _cleanup_predictor_ Predictor *p = NULL;
            SimulateParameters sp;
            SimulateReport r;

            simulate_parameters_init(&sp);
            sp.training = TRAINING;
            sp.cache_unit = CACHE_FILES;
            sp.cache_size = 70;
            sp.io_fixed_usec =
                    i < ELEMENTSOF(which) ? 0 : 10000; /* the time of a seek in the paper on EPCM */
            if (predictor_new(which[j].name, NULL, 1, &p) < 0 ||
                simulate(&accesses, &sp, p, &r) < 0)
                return -EIO;
            if (i >= ELEMENTSOF(which)) {
                late[j] += r.cache_hit_rate / n_seeds;
                continue;
            }
            hit[j] += r.cache_hit_rate / n_seeds;
            right[j] += r.first_right / n_seeds;
            accuracy[j] += (isnan(r.accuracy) ? 0 : r.accuracy) / n_seeds;
            state[j] += (double)r.state_bytes / n_seeds;
        }
    }
    printf("\nFiles, cache of 70, 55 %% training, one user, %u seeds\n\n", n_seeds);
    printf("| files, drawn | hits | the paper's | reads of 10 ms | first guess | accuracy | "
           "state KiB |\n| --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < ELEMENTSOF(which); i++)
        printf("| %s | %.2f | %s%s | %.2f | %.2f | %.2f | %.0f |\n", which[i].name, hit[i],
               which[i].paper ? which[i].paper : "-", which[i].paper ? " %" : "", late[i], right[i],
               accuracy[i], state[i] / 1024);
    return 0;
}

int main(int argc, char *argv[])
{
    unsigned n_seeds = argc > 1 ? (unsigned)atoi(argv[1]) : 8;
    uint64_t first = argc > 2 ? strcmp(argv[2], "now") == 0 ? (uint64_t)time(NULL)
                                                            : strtoull(argv[2], NULL, 10)
                              : 1;
    unsigned n_sessions = argc > 3 ? (unsigned)atoi(argv[3]) : 60;

    if (scenario("two users", UID_INVALID, n_seeds, first, n_sessions) < 0 ||
        scenario("one of the two users", 0, n_seeds, first, n_sessions) < 0 ||
        reliability(n_seeds, first, n_sessions) < 0 || files(n_seeds, first, n_sessions) < 0)
        return 1;
    return 0;
}
