/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the lists behind the report: report/page-data.h. */

#include "report/page-data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_edge(const Graph *g, size_t i, const char *from, const char *to,
                        double probability)
{
    assert_string_equal(g->names[g->edges[i].from], from);
    assert_string_equal(g->names[g->edges[i].to], to);
    assert_float_equal(g->edges[i].probability, probability, 1e-9);
}

static void test_graph(void **state)
{
    static const char *const names[] = {"begin", "lonely", "editor", "mail", "browser"};
    Graph g = {.n_nodes = 5, .starts = {10, 9, 8, 7, 6}};

    (void)state;
    for (size_t i = 0; i < 5; i++)
        assert_non_null(g.names[i] = strdup(names[i]));
    graph_add_edge(&g, &(GraphEdge){4, 2, 0.9});
    graph_add_edge(&g, &(GraphEdge){0, 3, 0.2});
    graph_add_edge(&g, &(GraphEdge){0, 4, 0.5});
    graph_add_edge(&g, &(GraphEdge){2, 3, 0.7});
    graph_arrange(&g);
    /* The node without an edge is gone. The edges of a node stand together, the likeliest first. */
    assert_int_equal(g.n_nodes, 4);
    assert_int_equal(g.n_edges, 4);
    assert_edge(&g, 0, "begin", "browser", 0.5);
    assert_edge(&g, 1, "begin", "mail", 0.2);
    assert_edge(&g, 2, "editor", "mail", 0.7);
    assert_edge(&g, 3, "browser", "editor", 0.9);
    assert_float_equal(g.starts[1], 8, 1e-9);
    graph_done(&g);
}

static void test_graph_limit(void **state)
{
    Graph g = {.n_nodes = GRAPH_NODES_MAX};

    (void)state;
    for (unsigned i = 0; i < GRAPH_NODES_MAX; i++) {
        g.starts[i] = 1;
        assert_non_null(g.names[i] = strdup("x"));
    }
    /* Only the most frequent edges are kept. */
    for (unsigned i = 0; i < GRAPH_EDGES_MAX + 10; i++)
        graph_add_edge(&g, &(GraphEdge){i % 7, 7 + i % 5, (i + 1) / 100.0});
    assert_int_equal(g.n_edges, GRAPH_EDGES_MAX);
    assert_float_equal(g.edges[0].probability, (GRAPH_EDGES_MAX + 10) / 100.0, 1e-9);
    assert_float_equal(g.edges[GRAPH_EDGES_MAX - 1].probability, 0.11, 1e-9);
    graph_arrange(&g);
    assert_int_equal(g.n_nodes, 12);
    graph_done(&g);
    /* An empty graph stays empty. */
    graph_arrange(&g);
    assert_int_equal(g.n_nodes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_graph),
            cmocka_unit_test(test_graph_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
