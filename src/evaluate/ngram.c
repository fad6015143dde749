/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* p-s-gram+ (Rutt and Parthasarathy, section 3.2, figure 2): for each order up to p there is a
 * table. It maps the last predecessors to the s accesses that followed them the last time. Of the
 * tables that contain the present predecessors, the one with the highest order makes the
 * prediction. With p = 1 and s = 1 this is the last-successor model (Kroeger and Long). With p =
 * 2 and s = 1 it is the 2-gram+.
 *
 * A value is stored once all s successors have been observed. In the figure, A B C A Z Y with s =
 * 3, the second A therefore changes nothing: only two accesses follow it. The paper gives no
 * probabilities. Here the probability comes from earlier guesses of the same order at the same
 * place of the stored value: (right + 1) / (made + 2). A guess is right if it came true within s
 * accesses. */

#include "evaluate/predictor-internal.h"

#include <string.h>

#define HASH_NONFATAL_OOM      1
#define uthash_nonfatal_oom(e) ((e)->lost = true)
#include <uthash.h>

#define ORDER_MAX      8
#define SUCCESSORS_MAX 16
#define GRAMS_MAX      (1U << 20) /* in one table; further ones are not learned */

/* predecessors -> successors */
typedef struct Gram {
    UT_hash_handle hh;
    bool lost;       /* the hash table had no memory for it */
    uint32_t data[]; /* order predecessors, then s successors */
} Gram;

/* How often guesses of one order were right at one place of the guessed sequence. */
typedef struct Reliability {
    uint64_t made, right;
} Reliability;

/* A guess that one of the next accesses may still confirm. */
typedef struct Outstanding {
    unsigned order; /* 0: no guess was made */
    uint32_t items[SUCCESSORS_MAX];
    bool came[SUCCESSORS_MAX];
} Outstanding;

typedef struct Ngram {
    Predictor base;
    unsigned p, s;
    Gram *tables[ORDER_MAX + 1]; /* by order */
    Reliability reliability[ORDER_MAX + 1][SUCCESSORS_MAX];
    uint32_t history[ORDER_MAX + SUCCESSORS_MAX]; /* oldest first */
    unsigned n_history;
    Outstanding outstanding[SUCCESSORS_MAX]; /* ring, newest at `turn` */
    unsigned turn;
} Ngram;

static int ngram_init(Predictor *p, const PredictorParameters *parameters, uint64_t seed)
{
    Ngram *g = (Ngram *)p;

    g->p = parameters->ngram_predecessors;
    g->s = parameters->ngram_successors;
    return 0;
}

static void ngram_done(Predictor *p)
{
    Ngram *g = (Ngram *)p;

    for (unsigned k = 1; k <= g->p; k++) {
        Gram *e, *next;

        HASH_ITER (hh, g->tables[k], e, next) {
            HASH_DEL(g->tables[k], e);
            free(e);
        }
    }
}

static int ngram_end(Predictor *p, usec_t now)
{
    Ngram *g = (Ngram *)p;

    g->n_history = 0;
    memset(g->outstanding, 0, sizeof(g->outstanding));
    return 0;
}

static Gram *lookup(const Ngram *g, const uint32_t *key, unsigned order)
{
    Gram *e = NULL;

    HASH_FIND(hh, g->tables[order], key, order * sizeof(*key), e);
    return e;
}

static int store(Ngram *g, unsigned order)
{
    const uint32_t *key = g->history + g->n_history - order - g->s;
    Gram *e = lookup(g, key, order);

    if (!e) {
        if (HASH_COUNT(g->tables[order]) >= GRAMS_MAX)
            return 0;
        e = calloc(1, sizeof(*e) + (order + g->s) * sizeof(uint32_t));
        if (!e)
            return -ENOMEM;
        memcpy(e->data, key, order * sizeof(*key));
        HASH_ADD(hh, g->tables[order], data[0], order * sizeof(*key), e);
        if (e->lost) {
            free(e);
            return -ENOMEM;
        }
    }
    memcpy(e->data + order, key + order, g->s * sizeof(*key));
    return 0;
}

/* Finds the entry of the last accesses in the table of the highest order that has one. NULL: no
 * table has one. */
static const Gram *best(const Ngram *g, unsigned *ret_order)
{
    for (unsigned k = MIN(g->p, g->n_history); k >= 1; k--) {
        const Gram *e = lookup(g, g->history + g->n_history - k, k);

        if (e) {
            *ret_order = k;
            return e;
        }
    }
    return NULL;
}

/* Marks the guesses that `item` confirms, and counts the guesses that were made s accesses ago. */
static void settle_guesses(Ngram *g, uint32_t item)
{
    Outstanding *oldest;

    for (unsigned i = 0; i < g->s; i++) {
        Outstanding *o = &g->outstanding[i];

        for (unsigned j = 0; o->order > 0 && j < g->s; j++)
            if (o->items[j] == item)
                o->came[j] = true;
    }
    g->turn = (g->turn + 1) % g->s;
    oldest = &g->outstanding[g->turn];
    for (unsigned j = 0; oldest->order > 0 && j < g->s; j++) {
        g->reliability[oldest->order][j].made++;
        g->reliability[oldest->order][j].right += oldest->came[j];
    }
    oldest->order = 0;
}

static int ngram_observe(Predictor *p, const PredictorEvent *event)
{
    Ngram *g = (Ngram *)p;
    const Gram *e;
    unsigned order;

    if (event->kind == PREDICTOR_EXIT)
        return 0;
    settle_guesses(g, event->item);
    if (g->n_history == g->p + g->s) {
        memmove(g->history, g->history + 1, (g->n_history - 1) * sizeof(*g->history));
        g->n_history--;
    }
    g->history[g->n_history++] = event->item;
    for (unsigned k = 1; k <= g->p && k + g->s <= g->n_history; k++) {
        int r = store(g, k);
        if (r < 0)
            return r;
    }
    e = best(g, &order);
    if (e) {
        Outstanding *o = &g->outstanding[g->turn];

        o->order = order;
        memcpy(o->items, e->data + order, g->s * sizeof(*o->items));
        memset(o->came, 0, sizeof(o->came));
    }
    return 0;
}

static int ngram_predict(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses)
{
    Ngram *g = (Ngram *)p;
    unsigned order = 0;
    const Gram *e = best(g, &order);

    for (unsigned j = 0; e && j < g->s; j++) {
        const Reliability *y = &g->reliability[order][j];
        int r = guesses_add(guesses, e->data[order + j],
                            ((double)y->right + 1) / ((double)y->made + 2));
        if (r < 0)
            return r;
    }
    return 0;
}

static size_t ngram_size(const Predictor *p)
{
    const Ngram *g = (const Ngram *)p;
    size_t n = 0;

    for (unsigned k = 1; k <= g->p; k++)
        n += HASH_COUNT(g->tables[k]) * (sizeof(Gram) + (k + g->s) * sizeof(uint32_t)) +
             HASH_OVERHEAD(hh, g->tables[k]);
    return n;
}

static void defaults_last_successor(PredictorParameters *p)
{
    p->ngram_predecessors = 1;
    p->ngram_successors = 1;
}

static void defaults_2_gram(PredictorParameters *p)
{
    p->ngram_predecessors = 2;
    p->ngram_successors = 1;
}

const PredictorOps predictor_ops_last_successor = {
        .name = "last-successor",
        .source = "Kroeger and Long 2001, section 2",
        .defaults = defaults_last_successor,
        .init = ngram_init,
        PREDICTOR_OPS(ngram, Ngram),
};
const PredictorOps predictor_ops_2_gram = {
        .name = "2-gram+",
        .source = "Rutt and Parthasarathy, section 3.2",
        .defaults = defaults_2_gram,
        .init = ngram_init,
        PREDICTOR_OPS(ngram, Ngram),
};
const PredictorOps predictor_ops_1_5_gram = {
        .name = "1-5-gram+",
        .source = "Rutt and Parthasarathy, section 3.2",
        .init = ngram_init,
        PREDICTOR_OPS(ngram, Ngram),
};
