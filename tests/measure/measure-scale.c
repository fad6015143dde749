/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Measures the cost of the mixture for growing numbers of applications, maps and events. Prints one
 * line for each size, separated by tabs, for docs/predictors.md and its plot. The workload
 * simulates many users (or projects) on one machine: applications come in groups of twenty, a
 * session uses one group, and one start in fifty is of any application.
 *
 *     measure-scale [APPLICATIONS MAPS EVENTS]   measures only this size */

#include "evaluate/random.h"
#include "predict/mixture.h"
#include "predict/object-scores.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#define GROUP         20U
#define SESSION_STEPS 200U /* events in one session */

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double mebibytes(size_t bytes)
{
    return (double)bytes / (1024 * 1024);
}

/* The state of the workload, from which next_event() draws one event after the other. */
typedef struct Source {
    Random random;
    uint32_t n_applications, group;
    usec_t at;
    unsigned step;
    uint8_t *running;
    uint32_t active[16];
    unsigned n_active;
} Source;

static int next_event(Source *s, Mixture *m)
{
    uint32_t x;

    if (s->step++ % SESSION_STEPS == 0) {
        mixture_end(m, (EventTime){s->at, s->at});
        memset(s->running, 0, s->n_applications);
        s->n_active = 0;
        s->at += 600 * USEC_PER_SEC;
        s->group = random_below(&s->random, MAX(s->n_applications / GROUP, 1U));
        if (mixture_begin(m, (EventTime){s->at, s->at}, s->group % 8, true) < 0)
            return -ENOMEM;
    }
    s->at += (usec_t)random_exponential(&s->random, 30e6);
    if (s->n_active == ELEMENTSOF(s->active) ||
        (s->n_active > 0 && random_below(&s->random, 2 * 8) < s->n_active)) {
        unsigned i = random_below(&s->random, s->n_active);

        x = s->active[i];
        s->active[i] = s->active[--s->n_active];
        s->running[x] = 0;
        return mixture_exit(m, (EventTime){s->at, s->at}, x);
    }
    do
        x = random_below(&s->random, 50) == 0
                    ? random_below(&s->random, s->n_applications)
                    : (s->group * GROUP + random_below(&s->random, GROUP)) % s->n_applications;
    while (s->running[x]);
    s->running[x] = 1;
    s->active[s->n_active++] = x;
    return mixture_start(m, (EventTime){s->at, s->at}, x);
}

static int measure(uint32_t n_applications, uint32_t n_maps, uint32_t n_events)
{
    _cleanup_mixture_ Mixture *m = NULL;
    _cleanup_guesses_ Guesses guesses = {0};
    _cleanup_object_scores_ ObjectScores scores = {0};
    _cleanup_free_ ItemParts *items = calloc(n_applications, sizeof(*items));
    _cleanup_free_ uint32_t *parts = calloc(n_maps, sizeof(*parts));
    _cleanup_free_ uint8_t *running = calloc(n_applications, 1);
    Source s = {.random = {42}, .n_applications = n_applications, .running = running};
    ObjectTable table = {items, n_applications, parts, n_maps};
    double start, trained, inferred;
    struct mallinfo2 before = mallinfo2(), after;
    struct rusage usage;
    const unsigned n_inferences = 20;
    const usec_t horizon = 20 * USEC_PER_SEC;
    const UserHistory *all;
    Chains *c;

    if (!items || !parts || !running ||
        chains_new(DECAYED_SUM_HALFLIFE_DEFAULT, MIXTURE_CHAIN_WINDOW, &c) < 0 ||
        mixture_new(c, &m) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_maps; i++)
        parts[i] = i;
    for (uint32_t i = 0; i < n_applications; i++)
        items[i] = (ItemParts){(uint32_t)((uint64_t)n_maps * i / n_applications),
                               (uint32_t)((uint64_t)n_maps * (i + 1) / n_applications -
                                          (uint64_t)n_maps * i / n_applications)};
    start = cpu_seconds();
    for (uint32_t i = 0; i < n_events; i++)
        if (next_event(&s, m) < 0)
            return -ENOMEM;
    trained = cpu_seconds() - start;
    after = mallinfo2();
    start = cpu_seconds();
    for (unsigned i = 0; i < n_inferences; i++) {
        if (mixture_predict(m, (EventTime){s.at + i, s.at + i}, &horizon, 1, &guesses) < 0 ||
            object_scores_compute(&scores, &table, &guesses) < 0)
            return -ENOMEM;
    }
    inferred = (cpu_seconds() - start) / n_inferences;
    getrusage(RUSAGE_SELF, &usage);
    all = c->histories[0];
    printf("%u\t%u\t%u\t%.3f\t%.2f\t%.1f\t%.1f\t%.1f\t%zu\t%zu\n", n_applications, n_maps, n_events,
           trained, inferred * 1e3,
           mebibytes((after.uordblks + after.hblkhd) - (before.uordblks + before.hblkhd)),
           mebibytes(chains_size(c)), (double)usage.ru_maxrss / 1024, all->n_pairs,
           all->n_co_occurring);
    fflush(stdout);
    return 0;
}

int main(int argc, char *argv[])
{
    static const uint32_t sizes[][3] = {
            {100, 1000, 10000},      {100, 10000, 100000},    {250, 25000, 250000},
            {500, 50000, 500000},    {1000, 100000, 1000000}, {1000, 100000, 2000000},
            {2000, 200000, 2000000},
    };

    printf("applications\tmaps\tevents\ttraining s\tinference ms\theap MiB\tstate MiB\tmax RSS MiB\t"
           "chains\tneighbours\n");
    if (argc == 4)
        return measure((uint32_t)atoi(argv[1]), (uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3])) <
               0;
    for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
        int status;
        pid_t pid;

        fflush(stdout);
        pid = fork(); /* each size runs in a process with a heap of its own */
        if (pid == 0)
            _exit(measure(sizes[i][0], sizes[i][1], sizes[i][2]) < 0);
        if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
            return 1;
    }
    return 0;
}
