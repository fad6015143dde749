/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The probability graph (Griffioen and Appleton, section 5). An arc A -> B counts the opens of B
 * within `graph_lookahead` opens after an open of A. B is predicted if its chance reaches the
 * minimum chance.
 *
 * The paper's chance is arcs(A, B) divided by all arcs out of A. With a lookahead of L every open
 * of A adds at most L arcs, so that even a successor that always comes has a chance of about 1/L.
 * The paper's ratio is therefore a probability only for L = 1, and one minimum chance cannot serve
 * different L. Here the chance is the share of the opens of A (those with a successor) after which
 * B was opened within the lookahead, once or more often. For L = 1 both are the same.
 * `graph_letter` selects the paper's ratio; the minimum chance is then divided by L.
 *
 * If a node with GRAPH_ARCS_MAX arcs needs another arc, all its counts are halved and arcs that
 * reach zero are dropped. This is the pruning and aging that the paper announces. */

#include "evaluate/predictor-internal.h"

#include <string.h>

#define GRAPH_ARCS_MAX 512U

#define LOOKAHEAD_MAX 64

typedef struct Arc {
    uint32_t to;
    uint32_t n_arcs;  /* opens of `to` within the lookahead of an open of this node */
    uint32_t n_opens; /* opens of this node that `to` followed, each counted once */
} Arc;

typedef struct Node {
    Arc *arcs; /* sorted by `to` */
    uint32_t n, allocated;
    uint64_t out;     /* sum of n_arcs */
    uint64_t n_opens; /* opens with a successor */
} Node;

typedef struct Graph {
    Predictor base;
    unsigned lookahead;
    double minimum_chance;
    bool letter;
    Node *nodes; /* by item */
    size_t allocated, n_arcs;
    uint32_t recent[LOOKAHEAD_MAX]; /* newest first */
    unsigned n_recent;
} Graph;

static int graph_init(Predictor *p, const PredictorParameters *parameters, uint64_t seed)
{
    Graph *g = (Graph *)p;

    g->lookahead = parameters->graph_lookahead;
    g->minimum_chance = parameters->graph_minimum_chance;
    g->letter = parameters->graph_letter;
    return 0;
}

static void graph_done(Predictor *p)
{
    Graph *g = (Graph *)p;

    for (size_t i = 0; i < g->allocated; i++)
        free(g->nodes[i].arcs);
    free(g->nodes);
}

static int graph_end(Predictor *p, usec_t now)
{
    ((Graph *)p)->n_recent = 0;
    return 0;
}

/* Returns the index of the arc, or the index at which it must be inserted. */
static uint32_t position(const Node *node, uint32_t to)
{
    uint32_t low = 0, high = node->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (node->arcs[middle].to < to)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void node_age(Graph *g, Node *node)
{
    uint32_t n = 0;

    node->out = 0;
    node->n_opens /= 2;
    for (uint32_t i = 0; i < node->n; i++) {
        Arc a = node->arcs[i];

        a.n_arcs /= 2;
        a.n_opens /= 2;
        if (a.n_arcs == 0)
            continue;
        node->out += a.n_arcs;
        node->arcs[n++] = a;
    }
    g->n_arcs -= node->n - n;
    node->n = n;
}

static int add_arc(Graph *g, uint32_t from, uint32_t to, bool first_successor, bool first_of_to)
{
    Node *node = &g->nodes[from];
    uint32_t at = position(node, to);

    if (at == node->n || node->arcs[at].to != to) {
        size_t allocated = node->allocated;
        void *arcs = node->arcs;
        int r;

        if (node->n >= GRAPH_ARCS_MAX) {
            node_age(g, node);
            if (node->n >= GRAPH_ARCS_MAX)
                return 0;
            at = position(node, to);
        }
        r = grow_array(&arcs, &allocated, (size_t)node->n + 1, sizeof(*node->arcs));
        if (r < 0)
            return r;
        node->arcs = arcs;
        node->allocated = (uint32_t)allocated;
        memmove(node->arcs + at + 1, node->arcs + at, (node->n - at) * sizeof(*node->arcs));
        node->arcs[at] = (Arc){.to = to};
        node->n++;
        g->n_arcs++;
    }
    if (node->arcs[at].n_arcs == UINT32_MAX)
        node_age(g, node);
    node->arcs[at].n_arcs++;
    node->out++;
    if (first_successor)
        node->n_opens++;
    if (first_of_to)
        node->arcs[at].n_opens++;
    return 0;
}

static int graph_observe(Predictor *p, const PredictorEvent *event)
{
    Graph *g = (Graph *)p;
    bool seen = false;
    int r;

    if (event->kind == PREDICTOR_EXIT)
        return 0;
    r = grow_array_zeroed(&g->nodes, &g->allocated, (size_t)event->item + 1, sizeof(*g->nodes));
    if (r < 0)
        return r;
    for (unsigned i = 0; i < g->n_recent; i++) {
        r = add_arc(g, g->recent[i], event->item, i == 0, !seen);
        if (r < 0)
            return r;
        /* The opens that are older than this one have counted the item already. */
        if (g->recent[i] == event->item)
            seen = true;
    }
    if (g->n_recent < g->lookahead)
        g->n_recent++;
    memmove(g->recent + 1, g->recent, (g->n_recent - 1) * sizeof(*g->recent));
    g->recent[0] = event->item;
    return 0;
}

static int graph_predict(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses)
{
    Graph *g = (Graph *)p;
    uint32_t last = g->n_recent > 0 ? g->recent[0] : PREDICTOR_NONE;
    const Node *node;

    if (last >= g->allocated)
        return 0;
    node = &g->nodes[last];
    for (uint32_t i = 0; i < node->n; i++) {
        const Arc *a = &node->arcs[i];
        double chance, minimum = g->minimum_chance;

        if (g->letter) {
            chance = (double)a->n_arcs / (double)node->out;
            minimum /= g->lookahead;
        } else
            chance = node->n_opens > 0 ? (double)a->n_opens / (double)node->n_opens : 0;
        if (chance >= minimum) {
            int r = guesses_add(guesses, a->to, chance);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

static size_t graph_size(const Predictor *p)
{
    const Graph *g = (const Graph *)p;

    return g->allocated * sizeof(Node) + g->n_arcs * sizeof(Arc);
}

const PredictorOps predictor_ops_graph = {
        .name = "graph",
        .source = "Griffioen and Appleton 1994, section 5",
        PREDICTOR_OPS(graph, Graph),
        .init = graph_init,
};
