/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/report-data.h"

#include <string.h>

#define EDGE_PROBABILITY_MIN 0.08

/* --- applications and files with the most data ------------------------------------------------ */

/* Adds each predicted file with its expected bytes to `files`, and stores these bytes in `bytes` at
 * the index of the file in the model. */
static int add_files(const Model *m, const Prediction *p, double *bytes, HeavyList *files)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < p->n_files; i++) {
        const PredictedFile *f = &p->files[i];
        uint32_t file = model_find_file(m, f->path);
        double sum = 0;

        for (size_t k = 0; k < f->n_maps; k++)
            sum += f->maps[k].probability * (double)f->maps[k].length;
        if (file != MODEL_NONE)
            bytes[file] = sum;
        r = heavy_list_add(files, f->path, sum, f->probability);
    }
    return r;
}

static int add_applications(const Model *m, const double *bytes, HeavyList *applications)
{
    const ModelStage *g = &m->stages[0];
    size_t use = 0;
    int r = 0;

    for (uint32_t i = 0; r >= 0 && i < g->n_applications; i++) {
        const ModelApplication *a = &g->applications[i];
        double sum = 0;

        for (; use < g->n_uses && g->uses[use].application == i; use++)
            sum += bytes[g->uses[use].file] * decayed_sum_ratio(g->uses[use].used, a->active);
        if (a->file != MODEL_NONE)
            r = heavy_list_add(applications, m->files[a->file].path, sum,
                               decayed_sum_ratio(a->active, g->sessions));
    }
    return r;
}

int report_find_heavy(const Model *m, Stage stage, HeavyList *applications, HeavyList *files)
{
    _cleanup_prediction_ Prediction *p = NULL;
    _cleanup_model_ Model *sum = NULL;
    _cleanup_free_ double *bytes = NULL;
    int r = model_sum_stages(m, 1U << stage, UID_INVALID, &sum);

    if (r < 0 || sum->n_stages == 0)
        return r;
    r = model_predict_stage(sum, sum->stages[0].stage, UID_INVALID, &p);
    if (r < 0)
        return r;
    bytes = calloc(sum->n_files + 1, sizeof(*bytes));
    if (!bytes)
        return -ENOMEM;
    r = add_files(sum, p, bytes, files);
    return r < 0 ? r : add_applications(sum, bytes, applications);
}

/* --- chains ----------------------------------------------------------------------------------- */

typedef struct Node {
    uint32_t application;
    double starts;
} Node;

static int by_starts(const void *a, const void *b)
{
    const Node *x = a, *y = b;

    if (x->starts != y->starts)
        return x->starts > y->starts ? -1 : 1;
    return (x->application > y->application) - (x->application < y->application);
}

/* Returns an array with the beginning of the session, followed by all applications, sorted by their
 * number of starts. The caller frees the array. NULL: no memory. */
static Node *sort_applications(const Chains *c, const UserHistory *h)
{
    Node *nodes = calloc(h->n_applications + 1, sizeof(*nodes));

    if (!nodes)
        return NULL;
    for (uint32_t i = 0; i < h->n_applications; i++)
        nodes[i] = (Node){i, chains_value(c, h->applications[i].starts)};
    if (h->n_applications > 1)
        qsort(nodes + 1, h->n_applications - 1, sizeof(*nodes), by_starts);
    nodes[0].starts = chains_value(c, h->sessions);
    return nodes;
}

static const char *name_of(const Chains *c, const UserHistory *h, uint32_t application)
{
    uint32_t id = h->applications[application].id;
    const char *name, *slash;

    if (application == CHAINS_BEGIN)
        return "session begins";
    if (id >= c->names.n)
        return "?";
    name = c->names.names[id];
    slash = strrchr(name, '/');
    return slash && slash[1] ? slash + 1 : name;
}

static void add_edge(const Chains *c, const UserHistory *h, const Node *nodes, unsigned from,
                     unsigned to, Graph *g)
{
    uint32_t a = nodes[from].application, b = nodes[to].application;
    const ChainsPair *p = a == b ? NULL : user_history_find_pair(h, a, b);
    double next;

    if (!p || nodes[from].starts <= 0)
        return;
    next = chains_value(c, p->next[p->a == b ? 0 : 1]) / nodes[from].starts;
    if (next >= EDGE_PROBABILITY_MIN)
        graph_add_edge(g, &(GraphEdge){from, to, next < 1 ? next : 1});
}

int report_make_graph(const Chains *c, Graph *ret)
{
    const UserHistory *h = c && c->n_histories > 0 ? c->histories[0] : NULL;
    _cleanup_free_ Node *nodes = NULL;
    _cleanup_(graph_done) Graph g = {0};
    size_t n;

    if (!h)
        return 0;
    nodes = sort_applications(c, h);
    if (!nodes)
        return -ENOMEM;
    n = MIN(h->n_applications, (size_t)GRAPH_NODES_MAX);
    for (; g.n_nodes < n; g.n_nodes++) {
        g.starts[g.n_nodes] = nodes[g.n_nodes].starts;
        g.names[g.n_nodes] = strdup(name_of(c, h, nodes[g.n_nodes].application));
        if (!g.names[g.n_nodes])
            return -ENOMEM;
    }
    for (unsigned from = 0; from < n; from++)
        for (unsigned to = 1; to < n; to++)
            add_edge(c, h, nodes, from, to, &g);
    graph_arrange(&g);
    *ret = g;
    g = (Graph){0};
    return 0;
}
