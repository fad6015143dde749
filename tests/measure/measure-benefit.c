/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Simulates histories of sessions with a known true effect of replay. Prints after how many
 * sessions a harmful policy is switched off, how often a policy that gains time is switched off,
 * and how often the interval contains the true effect. docs/benefit.md has the results. Exits with
 * 1 if a limit is missed.
 *
 *     measure-benefit [HISTORIES]     the table
 *     measure-benefit --curve         sessions and share of policies that are off, for plot-benefit
 */

#include "base/macros.h"
#include "evaluate/random.h"
#include "measure/benefit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SESSIONS 200U
#define LOST_MAX 0.01 /* share of the policies that gain time and may be switched off */
#define DAY      (24 * USEC_PER_HOUR)
#define START    (UINT64_C(1767225600) * USEC_PER_SEC) /* 2026-01-01 */

typedef enum Shape {
    SHAPE_NORMAL, /* logarithms of durations are normal */
    SHAPE_HEAVY,  /* one session in ten takes up to three times as long */
    SHAPE_DRIFT,  /* times grow by 20 % over the history, and by a further 20 % in its middle */
    _SHAPE_MAX,
} Shape;

static const char *const shape_names[_SHAPE_MAX] = {"normal", "heavy tails", "drift"};

typedef struct Scenario {
    double effect; /* share of time that replay saves; negative: harm */
    double variation;
    Shape shape;
} Scenario;

static double draw_seconds(Random *r, const Scenario *s, unsigned day, bool replayed)
{
    double t = log(5) + s->variation * random_normal(r);

    if (replayed)
        t += log(1 - s->effect);
    if (s->shape == SHAPE_HEAVY && random_uniform(r) < 0.1)
        t += random_uniform(r) * log(3);
    if (s->shape == SHAPE_DRIFT)
        t += log(1 + 0.2 * day / SESSIONS + (day > SESSIONS / 2 ? 0.2 : 0));
    return exp(t);
}

typedef struct Outcome {
    unsigned off_at; /* session after which the policy was switched off; 0: never */
    unsigned n_control;
    bool has_interval, contains;
} Outcome;

static int simulate(Random *random, const Scenario *scenario, Outcome *ret)
{
    SessionRecord v[SESSIONS];
    Outcome o = {0};
    Benefit b = {0};

    for (unsigned i = 0; i < SESSIONS; i++) {
        usec_t now = START + i * DAY;
        uint32_t interval = i == 0 ? 0 : benefit_control_interval(&b, 0, now);
        bool control = interval > 0 && random_below(random, interval) == 0;
        int r;

        v[i] = session_record_empty(STAGE_BOOT);
        v[i].start_realtime_usec = now;
        v[i].ready_usec = (usec_t)(draw_seconds(random, scenario, i, !control) * USEC_PER_SEC);
        v[i].policy = POLICY_CONCURRENT;
        v[i].flags = control ? SESSION_CONTROL : 0;
        snprintf(v[i].outcome, sizeof(v[i].outcome), "%s", control ? "control" : "done");
        o.n_control += control;
        r = benefit_compute(v, i + 1, STAGE_BOOT, now, &b);
        if (r < 0)
            return r;
        if (b.harmful) {
            o.off_at = i + 1;
            break;
        }
    }
    o.has_interval = b.effect.known;
    o.contains = b.effect.saved_low <= scenario->effect && b.effect.saved_high >= scenario->effect;
    *ret = o;
    return 0;
}

static int compare_unsigned(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

    return (x > y) - (x < y);
}

/* Returns true if a limit is missed: half of the policies with 10 % harm are off after 20 sessions
 * at a variation of 5 %, and after 80 at 10 %; of those that gain time, at most the share LOST_MAX
 * is switched off. */
static bool misses_limit(const Scenario *s, unsigned median, unsigned n_off, unsigned histories)
{
    if (s->effect < 0)
        return median > (s->variation < 0.06 ? 20 : 80);
    return s->variation < 0.11 && n_off > LOST_MAX * histories;
}

/* Simulates histories. off[] has one element for each history, in ascending order: the number of
 * the session after which the policy was switched off, or SESSIONS + 1 if it never was. Returns 1
 * if a limit is missed, 0 if not, or a negative errno. */
static int run(const Scenario *s, unsigned histories, unsigned *off, bool print)
{
    unsigned n_off = 0, n_contain = 0, n_interval = 0, n_control = 0;
    Random random = {.state = 1};
    bool missed;

    for (unsigned i = 0; i < histories; i++) {
        Outcome o;
        int r = simulate(&random, s, &o);

        if (r < 0)
            return r;
        off[i] = o.off_at ? o.off_at : SESSIONS + 1;
        n_off += o.off_at > 0;
        n_control += o.n_control;
        /* An interval after an early stop is not counted, because its number of sessions was not
         * fixed. */
        n_interval += o.has_interval && !o.off_at;
        n_contain += o.has_interval && !o.off_at && o.contains;
    }
    qsort(off, histories, sizeof(*off), compare_unsigned);
    missed = misses_limit(s, off[histories / 2], n_off, histories);
    if (!print)
        return missed;
    printf("| %+.0f %% | %.0f %% | %-11s | ", 100 * s->effect, 100 * s->variation,
           shape_names[s->shape]);
    if (off[histories / 2] <= SESSIONS)
        printf("%6u", off[histories / 2]);
    else
        printf(" never");
    printf(" | %5.1f %% | %4.1f |", 100.0 * n_off / histories, (double)n_control / histories);
    if (n_interval * 2 > histories)
        printf(" %4.1f %% |\n", 100.0 * n_contain / n_interval);
    else
        printf("      - |\n");
    return missed;
}

/* The first N_CURVES scenarios are drawn. */
#define N_CURVES 12U

static const Scenario scenarios[] = {
        {-0.10, 0.05, SHAPE_NORMAL}, {-0.10, 0.05, SHAPE_HEAVY}, {-0.10, 0.05, SHAPE_DRIFT},
        {-0.10, 0.10, SHAPE_NORMAL}, {-0.10, 0.10, SHAPE_HEAVY}, {-0.10, 0.10, SHAPE_DRIFT},
        {0.05, 0.05, SHAPE_NORMAL},  {0.05, 0.05, SHAPE_HEAVY},  {0.05, 0.05, SHAPE_DRIFT},
        {0.05, 0.10, SHAPE_NORMAL},  {0.05, 0.10, SHAPE_HEAVY},  {0.05, 0.10, SHAPE_DRIFT},
        {0.05, 0.20, SHAPE_NORMAL},  {0.30, 0.10, SHAPE_NORMAL}, {0.30, 0.20, SHAPE_HEAVY},
};

static int print_table(unsigned histories, unsigned *off)
{
    unsigned n_missed = 0;

    puts("| true effect | variation | shape | off after, median | off | control sessions | interval "
         "contains it |");
    puts("| --- | --- | --- | --- | --- | --- | --- |");
    for (size_t i = 0; i < ELEMENTSOF(scenarios); i++) {
        int r = run(&scenarios[i], histories, off, true);

        if (r < 0)
            return 2;
        n_missed += (unsigned)r;
    }
    fprintf(stderr, "measure-benefit: %u of %zu scenarios miss a limit\n", n_missed,
            ELEMENTSOF(scenarios));
    return n_missed > 0;
}

/* Prints the share of policies that are off after each number of sessions. */
static int print_curve(unsigned histories, unsigned *off)
{
    for (size_t c = 0; c < N_CURVES; c++) {
        const Scenario *s = &scenarios[c];
        unsigned at = 0;

        if (run(s, histories, off, false) < 0)
            return 2;
        for (unsigned i = 1; i <= SESSIONS; i++) {
            while (at < histories && off[at] <= i)
                at++;
            printf("%.2f %.2f %u %.4f %s\n", s->effect, s->variation, i, (double)at / histories,
                   shape_names[s->shape]);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    bool curve = argc > 1 && strcmp(argv[1], "--curve") == 0;
    unsigned histories = argc > 1 && !curve ? (unsigned)atoi(argv[1]) : 1000;
    unsigned *off = calloc(histories + 1, sizeof(*off));
    int r;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!off || histories == 0)
        return 2;
    r = curve ? print_curve(histories, off) : print_table(histories, off);
    free(off);
    return r;
}
