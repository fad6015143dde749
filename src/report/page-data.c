/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/page-data.h"

#include <string.h>

void heavy_list_done(HeavyList *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i].path);
    *l = (HeavyList){0};
}

int heavy_list_add(HeavyList *l, const char *path, double bytes, double probability)
{
    size_t at = l->n;
    char *copy;

    while (at > 0 && bytes > l->items[at - 1].bytes)
        at--;
    if (at == HEAVY_MAX || bytes <= 0)
        return 0;
    copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    if (l->n == HEAVY_MAX)
        free(l->items[--l->n].path);
    memmove(l->items + at + 1, l->items + at, (l->n - at) * sizeof(HeavyItem));
    l->items[at] = (HeavyItem){copy, bytes, probability};
    l->n++;
    return 0;
}

Calibration calibration_of(const SessionRecord *sessions, size_t n, Stage stage)
{
    Calibration c = {0};

    for (size_t i = 0; i < n; i++) {
        uint64_t files = 0;

        if (sessions[i].stage != stage)
            continue;
        for (size_t k = 0; k < USAGE_CLASSES; k++) {
            c.planned[k] += sessions[i].usage.planned[k];
            c.opened[k] += sessions[i].usage.opened[k];
            files += sessions[i].usage.planned[k];
        }
        c.n_sessions += files > 0;
    }
    return c;
}

void graph_done(Graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        free(g->names[i]);
    *g = (Graph){0};
}

void graph_add_edge(Graph *g, const GraphEdge *e)
{
    double weight = e->probability * g->starts[e->from];
    size_t at = g->n_edges;

    while (at > 0 && weight > g->edges[at - 1].probability * g->starts[g->edges[at - 1].from])
        at--;
    if (at == GRAPH_EDGES_MAX)
        return;
    g->n_edges = MIN(g->n_edges + 1, (size_t)GRAPH_EDGES_MAX);
    memmove(g->edges + at + 1, g->edges + at, (g->n_edges - at - 1) * sizeof(*e));
    g->edges[at] = *e;
}

static int by_node(const void *a, const void *b)
{
    const GraphEdge *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->probability != y->probability)
        return x->probability > y->probability ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

void graph_arrange(Graph *g)
{
    bool used[GRAPH_NODES_MAX] = {0};
    unsigned place[GRAPH_NODES_MAX] = {0};
    size_t n = 0;

    for (size_t i = 0; i < g->n_edges; i++)
        used[g->edges[i].from] = used[g->edges[i].to] = true;
    for (size_t i = 0; i < g->n_nodes; i++) {
        if (!used[i]) {
            free(g->names[i]);
            continue;
        }
        place[i] = (unsigned)n;
        g->names[n] = g->names[i];
        g->starts[n++] = g->starts[i];
    }
    g->n_nodes = n;
    for (size_t i = 0; i < g->n_edges; i++) {
        g->edges[i].from = place[g->edges[i].from];
        g->edges[i].to = place[g->edges[i].to];
    }
    if (g->n_edges > 1)
        qsort(g->edges, g->n_edges, sizeof(*g->edges), by_node);
}
