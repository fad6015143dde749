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
