/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Access trees (Lei and Duchamp 1997, described in the preload thesis, 2.3). A run of an
 * application, from its start to its exit, is a list of what was started or accessed during it, in
 * order. A started application has a list of its own, so the lists form a tree; its root is the
 * session. The latest TREES_MAX lists of each application are kept. The list of a run that has not
 * ended is compared with the kept lists of its application. The predictor takes the kept list that
 * agrees best and predicts the part of it that has not come yet, together with the lists of the
 * applications in that part.
 *
 * The paper follows fork and exec. Events here do not name the parent process, so the parent of an
 * event is the application that started last and still runs. */

#include "evaluate/predictor-internal.h"

#include <string.h>

#define TREES_MAX    4U
#define CHILDREN_MAX 4096U /* of one list; later events are not added */
/* An event is searched for in the next AHEAD_MAX entries of a list. At most AHEAD_MAX entries of a
 * list are predicted. */
#define AHEAD_MAX   64U
#define DEPTH_MAX   4U /* of predicted lists within lists */
#define GUESSES_MAX 512U

typedef struct List {
    uint32_t *children; /* items */
    size_t n, allocated;
} List;

/* The finished lists of an application. */
typedef struct Trees {
    List lists[TREES_MAX]; /* the newest first */
    unsigned n;
} Trees;

/* A run that has not ended. */
typedef struct Run {
    uint32_t node; /* 0: the session; else item + 1 */
    List list;
    size_t next[TREES_MAX];  /* the entry of the finished list after the one that an event agreed
                                with last */
    size_t agree[TREES_MAX]; /* number of events that the finished list contains */
} Run;

typedef struct AccessTrees {
    Predictor base;
    Trees *trees; /* by node */
    size_t allocated_trees;
    Run *runs; /* in order of start; [0] is the session */
    size_t n_runs, allocated_runs;
    RunningSet running;
    size_t n_children; /* of all finished lists */
} AccessTrees;

static int begin_run(AccessTrees *a, uint32_t node)
{
    int r = grow_array_zeroed(&a->trees, &a->allocated_trees, (size_t)node + 1, sizeof(*a->trees));

    if (r >= 0)
        r = grow_array(&a->runs, &a->allocated_runs, a->n_runs + 1, sizeof(*a->runs));
    if (r >= 0)
        a->runs[a->n_runs++] = (Run){.node = node};
    return r;
}

/* Ends the run and keeps its list. If the application has TREES_MAX lists, the new list replaces
 * the oldest. */
static void end_run(AccessTrees *a, size_t i)
{
    Run x = a->runs[i];
    Trees *t = &a->trees[x.node];

    memmove(a->runs + i, a->runs + i + 1, (a->n_runs - i - 1) * sizeof(*a->runs));
    a->n_runs--;
    if (x.list.n == 0) {
        free(x.list.children);
        return;
    }
    if (t->n == TREES_MAX) {
        a->n_children -= t->lists[--t->n].n;
        free(t->lists[t->n].children);
    }
    memmove(t->lists + 1, t->lists, t->n * sizeof(*t->lists));
    t->lists[0] = x.list;
    t->n++;
    a->n_children += x.list.n;
}

static int add_child(AccessTrees *a, uint32_t item)
{
    Run *x = &a->runs[a->n_runs - 1];
    const Trees *t = &a->trees[x->node];
    int r;

    if (x->list.n >= CHILDREN_MAX)
        return 0;
    r = grow_array(&x->list.children, &x->list.allocated, x->list.n + 1, sizeof(uint32_t));
    if (r < 0)
        return r;
    x->list.children[x->list.n++] = item;
    for (unsigned k = 0; k < t->n; k++)
        for (size_t i = x->next[k]; i < MIN(x->next[k] + AHEAD_MAX, t->lists[k].n); i++)
            if (t->lists[k].children[i] == item) {
                x->next[k] = i + 1;
                x->agree[k]++;
                break;
            }
    return 0;
}

static int access_trees_init(Predictor *p, const PredictorParameters *parameters, uint64_t seed)
{
    return begin_run((AccessTrees *)p, 0);
}

static void access_trees_done(Predictor *p)
{
    AccessTrees *a = (AccessTrees *)p;

    for (size_t i = 0; i < a->n_runs; i++)
        free(a->runs[i].list.children);
    for (size_t i = 0; i < a->allocated_trees; i++)
        for (unsigned k = 0; k < a->trees[i].n; k++)
            free(a->trees[i].lists[k].children);
    free(a->trees);
    free(a->runs);
    running_set_done(&a->running);
}

static int access_trees_end(Predictor *p, usec_t now)
{
    AccessTrees *a = (AccessTrees *)p;

    while (a->n_runs > 0)
        end_run(a, a->n_runs - 1);
    running_set_clear(&a->running);
    return begin_run(a, 0);
}

static int access_trees_observe(Predictor *p, const PredictorEvent *e)
{
    AccessTrees *a = (AccessTrees *)p;
    int r;

    if (e->kind == PREDICTOR_ACCESS)
        return add_child(a, e->item);
    if (e->kind == PREDICTOR_EXIT) {
        size_t i = a->n_runs - 1;

        if (running_set_exit(&a->running, e->item) == 0)
            return 0;
        while (i > 0 && a->runs[i].node != e->item + 1)
            i--;
        if (i > 0)
            end_run(a, i);
        return 0;
    }
    r = running_set_start(&a->running, e->item);
    if (r <= 0)
        return r;
    r = add_child(a, e->item);
    return r < 0 ? r : begin_run(a, e->item + 1);
}

/* Adds entries of a list from `from` on, each with the newest list of its application. */
static int guess_list(const AccessTrees *a, const List *list, size_t from, double chance,
                      unsigned depth, Guesses *guesses)
{
    int r = 0;

    for (size_t i = from; r >= 0 && i < MIN(from + AHEAD_MAX, list->n); i++) {
        uint32_t item = list->children[i];

        if (guesses->n >= GUESSES_MAX)
            break;
        if (running_set_contains(&a->running, item))
            continue;
        r = guesses_add(guesses, item, chance);
        if (r >= 0 && depth < DEPTH_MAX && item + 1 < a->allocated_trees &&
            a->trees[item + 1].n > 0)
            r = guess_list(a, &a->trees[item + 1].lists[0], 0, chance, depth + 1, guesses);
    }
    return r;
}

/* Predicts the rest of the chosen list of each run. The probability of a guess is the share of the
 * run's events that the chosen list contains. One more event counts as contained by half, so that
 * the probability is always below 1. */
static int access_trees_predict(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses)
{
    const AccessTrees *a = (const AccessTrees *)p;
    int r = 0;

    for (size_t i = a->n_runs; r >= 0 && i-- > 0;) {
        const Run *x = &a->runs[i];
        const Trees *t = &a->trees[x->node];
        unsigned best = 0;

        for (unsigned k = 1; k < t->n; k++)
            if (x->agree[k] > x->agree[best])
                best = k;
        if (t->n > 0)
            r = guess_list(a, &t->lists[best], x->next[best],
                           ((double)x->agree[best] + 0.5) / ((double)x->list.n + 1), 0, guesses);
    }
    return r;
}

static size_t access_trees_size(const Predictor *p)
{
    const AccessTrees *a = (const AccessTrees *)p;

    return a->allocated_trees * sizeof(*a->trees) + a->n_children * sizeof(uint32_t);
}

const PredictorOps predictor_ops_access_trees = {
        .name = "access-trees",
        .source = "Lei and Duchamp 1997 (preload thesis 2.3)",
        PREDICTOR_OPS(access_trees, AccessTrees),
        .init = access_trees_init,
};
