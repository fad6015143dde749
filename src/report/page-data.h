/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the report shows: plain data. Pure. */

#include "measure/benefit.h"
#include "report/timeline.h"

/* What is read most: an application or a file. */
typedef struct HeavyItem {
    char *path;
    double bytes; /* expected in one session */
    double probability;
} HeavyItem;

#define HEAVY_MAX 10U

typedef struct HeavyList {
    HeavyItem items[HEAVY_MAX]; /* the heaviest first */
    size_t n;
} HeavyList;

void heavy_list_done(HeavyList *l);

/* Adds the item if it is among the heaviest. The path is copied. 0 or -ENOMEM. */
int heavy_list_add(HeavyList *l, const char *path, double bytes, double probability);

/* Which applications follow which. */
#define GRAPH_NODES_MAX 14U
#define GRAPH_EDGES_MAX 28U

typedef struct GraphEdge {
    unsigned from, to;  /* nodes */
    double probability; /* that `to` is the next to start after `from` */
} GraphEdge;

typedef struct Graph {
    char *names[GRAPH_NODES_MAX];
    double starts[GRAPH_NODES_MAX]; /* in a session */
    size_t n_nodes;
    GraphEdge edges[GRAPH_EDGES_MAX]; /* the most frequent first */
    size_t n_edges;
} Graph;

void graph_done(Graph *g);

/* Adds an edge if it is among the most frequent ones. */
void graph_add_edge(Graph *g, const GraphEdge *e);

/* Everything that the page shows. It borrows all of it. */
typedef struct ReportPage {
    const char *version, *machine; /* of headstart; one line on the machine, or NULL */
    usec_t now;                    /* wall clock */
    long utc_offset_seconds;       /* of local time */
    const Benefit *benefits;       /* by Stage */
    const SessionRecord *sessions; /* oldest first */
    const SessionExclusion *exclusions;
    size_t n_sessions;
    bool names;                            /* the reader may see what others run and open */
    uint32_t uid;                          /* whose logins are shown without `names` */
    const Timeline *timelines[2];          /* boot and login; NULL: no trace */
    const HeavyList *applications, *files; /* by Stage: boot and login */
    const Graph *graph;                    /* NULL: nothing was learned */
} ReportPage;

/* Sum over all sessions of a stage: how many files of the class of probability were planned, and
 * how many of them were opened. */
typedef struct Calibration {
    uint64_t planned[USAGE_CLASSES], opened[USAGE_CLASSES];
    size_t n_sessions;
} Calibration;
Calibration calibration_of(const SessionRecord *sessions, size_t n, Stage stage);
