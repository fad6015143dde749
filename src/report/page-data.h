/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The data that the report shows. Pure. */

#include "measure/launch-benefit.h"
#include "report/timeline.h"

/* An application or a file. */
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

/* Adds the item if it is among the heaviest. The path is copied. Returns 0 or -ENOMEM. */
int heavy_list_add(HeavyList *l, const char *path, double bytes, double probability);

/* The applications that start most often, and their successors. */
#define GRAPH_NODES_MAX 14U
#define GRAPH_EDGES_MAX 28U

typedef struct GraphEdge {
    unsigned from, to;  /* nodes */
    double probability; /* that `to` is the next application that starts after `from` */
} GraphEdge;

typedef struct Graph {
    char *names[GRAPH_NODES_MAX];
    double starts[GRAPH_NODES_MAX]; /* decayed number of starts of each node; node 0 is the
                                       beginning of a session */
    size_t n_nodes;
    GraphEdge edges[GRAPH_EDGES_MAX]; /* the most frequent first, until graph_arrange() */
    size_t n_edges;
} Graph;

void graph_done(Graph *g);

/* Adds an edge if it is among the most frequent ones. */
void graph_add_edge(Graph *g, const GraphEdge *e);

/* Removes the nodes without an edge, and sorts the edges by node, the most probable edge of a node
 * first. No edge is added after that. */
void graph_arrange(Graph *g);

/* All data of the page. The pointers are borrowed. */
typedef struct ReportPage {
    const char *version;      /* of headstart */
    const char *machine;      /* one line on the machine, or NULL */
    usec_t now;               /* wall clock */
    long utc_offset_seconds;  /* of local time */
    const Benefit *benefits;  /* by Stage */
    const char *const *off;   /* by Stage: word of the reason why it is not replayed, or NULL */
    bool kept_on[_STAGE_MAX]; /* the stage is replayed although replay does harm */
    const SessionRecord *sessions; /* that the reader may see, oldest first */
    const SessionExclusion *exclusions;
    size_t n_sessions;
    const LaunchBenefits *launches; /* of the applications that the reader may see */
    const char *launches_off;       /* word of the reason why starts are not replayed, or NULL */
    bool names;                   /* the reader may see the applications and files of other users */
    const Timeline *timelines[2]; /* boot and login; NULL: no trace */
    const HeavyList *applications, *files; /* by Stage: boot and login */
    const Graph *graph;                    /* NULL: nothing was learned */
} ReportPage;

/* For each class of predicted probability: the number of planned files, and how many of them were
 * opened, summed over all sessions of a stage. */
typedef struct Calibration {
    uint64_t planned[USAGE_CLASSES], opened[USAGE_CLASSES];
    size_t n_sessions;
} Calibration;
Calibration calibration_of(const SessionRecord *sessions, size_t n, Stage stage);
