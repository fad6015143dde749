/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Partitioned Context Models (Kroeger and Long 2001, sections 2.1 to 2.3).
 *
 * PCM is a trie of the observed patterns. Each node counts how often its pattern occurred. The trie
 * is cut into one partition for each first-order node, of at most `partition_nodes` nodes including
 * that one. If a full partition needs another node, all its counts are halved, and nodes whose
 * count becomes zero are dropped, except the first-order node. If that frees nothing, the access is
 * ignored. `partition_order` is the length of the longest pattern. The paper's figures for PCM use
 * small lengths (default 3).
 *
 * In the paper, EPCM allows orders up to 75-85 % of the nodes of a partition. The default here is
 * order 45 with 64 nodes. EPCM adds one new node for each instance of a pattern, as in Lempel-Ziv
 * coding: an instance that leaves the known patterns adds the node where it leaves them, and ends.
 *
 * The likelihood of a child is its count divided by the sum of the counts of all children. This sum
 * is the number of instances of the pattern whose successor was observed. The paper's example
 * confirms this: CA occurs three times, its last successor is not yet known, and A and C get 0.5
 * each. Unlike a share of the parent's count, the likelihoods remain a distribution after halving.
 *
 * PCM predicts the children of the longest current context that has children. EPCM starts from the
 * longest context whose likeliest child has a likelihood above `partition_threshold`. It follows
 * the likeliest child while the likelihood of the whole run exceeds the threshold, at most 2 *
 * `partition_order` steps. With `partition_jump` n > 0 a run that reaches a leaf continues in the
 * partition that begins with its last n symbols (the paper's section 6), at most JUMPING_STEPS_MAX
 * steps: a run of files that are always read in one order has no other end. */

#include "evaluate/predictor-internal.h"

#include <string.h>

#define NO_NODE           UINT16_MAX
#define JUMPING_STEPS_MAX 1024U

typedef struct ContextNode {
    uint32_t symbol;
    uint32_t count; /* 0: the slot is free */
    uint16_t child, next, parent;
} ContextNode;

/* The patterns that begin with one symbol; node 0 is that symbol. */
typedef struct Partition {
    ContextNode *nodes;
    uint16_t used, allocated; /* used: slots that are not free */
    uint16_t n;               /* number of slots that were ever used */
} Partition;

/* A pattern that may continue: the last `depth` symbols, as a path in the partition of their first
 * symbol. */
typedef struct Instance {
    uint32_t partition;
    uint16_t node;
    uint16_t depth;
} Instance;

typedef struct Context {
    Predictor base;
    bool extended; /* EPCM */
    unsigned size, order, jump;
    double threshold;
    Partition *partitions; /* by item */
    size_t allocated;
    size_t n_nodes;      /* allocated slots, all partitions */
    Instance *instances; /* longest first; at most `order` */
    size_t n_instances;
    uint32_t *history; /* the last `order` symbols, oldest first */
    size_t n_history;
} Context;

static void context_done(Predictor *p)
{
    Context *c = (Context *)p;

    for (size_t i = 0; i < c->allocated; i++)
        free(c->partitions[i].nodes);
    free(c->partitions);
    free(c->instances);
    free(c->history);
}

static int context_init(Context *c, const PredictorParameters *p, bool extended)
{
    c->extended = extended;
    c->size = p->partition_nodes;
    c->order = p->partition_order;
    c->jump = p->partition_jump;
    c->threshold = p->partition_threshold;
    c->instances = calloc(c->order + 1, sizeof(*c->instances));
    c->history = calloc(c->order, sizeof(*c->history));
    return c->instances && c->history ? 0 : -ENOMEM;
}

static int pcm_init(Predictor *p, const PredictorParameters *parameters, uint64_t seed)
{
    return context_init((Context *)p, parameters, false);
}

static int epcm_init(Predictor *p, const PredictorParameters *parameters, uint64_t seed)
{
    return context_init((Context *)p, parameters, true);
}

static int context_end(Predictor *p, usec_t now)
{
    Context *c = (Context *)p;

    c->n_instances = 0;
    c->n_history = 0;
    return 0;
}

static uint16_t find_child(const Partition *part, uint16_t node, uint32_t symbol)
{
    for (uint16_t i = part->nodes[node].child; i != NO_NODE; i = part->nodes[i].next)
        if (part->nodes[i].symbol == symbol)
            return i;
    return NO_NODE;
}

/* Finds the partition of a symbol or makes it, with its first-order node. */
static int get_partition(Context *c, uint32_t symbol, Partition **ret)
{
    Partition *part;
    int r;

    r = grow_array_zeroed(&c->partitions, &c->allocated, (size_t)symbol + 1,
                          sizeof(*c->partitions));
    if (r < 0)
        return r;
    part = &c->partitions[symbol];
    if (!part->nodes) {
        part->nodes = malloc(4 * sizeof(*part->nodes));
        if (!part->nodes)
            return -ENOMEM;
        part->allocated = 4;
        part->n = part->used = 1;
        part->nodes[0] = (ContextNode){symbol, 0, NO_NODE, NO_NODE, NO_NODE};
        c->n_nodes += part->allocated;
    }
    *ret = part;
    return 0;
}

/* Halves all counts and frees the nodes that reach zero, with their descendants. Instances on a
 * freed node end (their node is NO_NODE). */
static void partition_halve(Context *c, uint32_t symbol)
{
    Partition *part = &c->partitions[symbol];
    bool again = true;

    for (uint16_t i = 0; i < part->n; i++)
        part->nodes[i].count /= 2;
    /* After a halving a child may count more than its parent. */
    while (again) {
        again = false;
        for (uint16_t i = 1; i < part->n; i++)
            if (part->nodes[i].count > 0 && part->nodes[part->nodes[i].parent].count == 0) {
                part->nodes[i].count = 0;
                again = true;
            }
    }
    part->used = 1;
    for (uint16_t i = 0; i < part->n; i++) {
        uint16_t *link = &part->nodes[i].child;

        while (*link != NO_NODE) {
            if (part->nodes[*link].count > 0)
                link = &part->nodes[*link].next;
            else
                *link = part->nodes[*link].next;
        }
        part->used = (uint16_t)(part->used + (i > 0 && part->nodes[i].count > 0));
    }
    for (size_t i = 0; i < c->n_instances; i++) {
        Instance *in = &c->instances[i];

        if (in->partition == symbol && in->node != NO_NODE && in->node != 0 &&
            part->nodes[in->node].count == 0)
            in->node = NO_NODE;
    }
}

/* Finds a slot for a new child of `parent`. Returns 0, -ENOSPC (full; the caller may halve),
 * -ENOMEM. */
static int partition_add_child(Context *c, Partition *part, uint16_t parent, uint32_t symbol,
                               uint16_t *ret)
{
    uint16_t slot = part->n;

    if (part->used >= c->size)
        return -ENOSPC;
    if (part->used < part->n)
        for (slot = 1; part->nodes[slot].count > 0; slot++)
            ;
    if (slot == part->allocated) {
        uint16_t n = (uint16_t)MIN((unsigned)part->allocated * 2, c->size);
        ContextNode *nodes = reallocarray(part->nodes, n, sizeof(*nodes));

        if (!nodes)
            return -ENOMEM;
        c->n_nodes += (size_t)(n - part->allocated);
        part->nodes = nodes;
        part->allocated = n;
    }
    part->n = MAX(part->n, (uint16_t)(slot + 1));
    part->used++;
    part->nodes[slot] = (ContextNode){symbol, 1, NO_NODE, part->nodes[parent].child, parent};
    part->nodes[parent].child = slot;
    *ret = slot;
    return 0;
}

static void count_up(Context *c, uint32_t partition, uint16_t node)
{
    ContextNode *n = &c->partitions[partition].nodes[node];

    if (n->count == UINT32_MAX)
        partition_halve(c, partition);
    n->count++;
}

/* Extends one instance by a symbol. Returns 1 if the instance continues, 0 if it ends here, or a
 * negative errno. */
static int instance_advance(Context *c, Instance *in, uint32_t symbol)
{
    Partition *part = &c->partitions[in->partition];
    uint16_t child;
    int r;

    if (in->node == NO_NODE)
        return 0;
    child = find_child(part, in->node, symbol);
    if (child != NO_NODE) {
        count_up(c, in->partition, child);
        in->node = child;
        in->depth++;
        return in->depth < c->order;
    }
    r = partition_add_child(c, part, in->node, symbol, &child);
    if (r == -ENOSPC) {
        partition_halve(c, in->partition);
        if (in->node == NO_NODE)
            return 0;
        r = partition_add_child(c, part, in->node, symbol, &child);
    }
    if (r < 0)
        return r == -ENOSPC ? 0 : r;
    in->node = child;
    in->depth++;
    return !c->extended && in->depth < c->order;
}

static int context_observe(Predictor *p, const PredictorEvent *event)
{
    Context *c = (Context *)p;
    Partition *part;
    size_t n = 0;
    int r;

    if (event->kind == PREDICTOR_EXIT)
        return 0;
    if (c->n_history == c->order) {
        memmove(c->history, c->history + 1, (c->n_history - 1) * sizeof(*c->history));
        c->n_history--;
    }
    c->history[c->n_history++] = event->item;
    r = get_partition(c, event->item, &part);
    if (r < 0)
        return r;
    for (size_t i = 0; i < c->n_instances; i++) {
        r = instance_advance(c, &c->instances[i], event->item);
        if (r < 0)
            return r;
        if (r == 0)
            c->instances[i].node = NO_NODE;
    }
    for (size_t i = 0; i < c->n_instances; i++)
        if (c->instances[i].node != NO_NODE)
            c->instances[n++] = c->instances[i];
    c->n_instances = n;
    count_up(c, event->item, 0);
    c->instances[c->n_instances++] = (Instance){event->item, 0, 1};
    return 0;
}

static uint64_t children_sum(const Partition *part, uint16_t node)
{
    uint64_t sum = 0;

    for (uint16_t i = part->nodes[node].child; i != NO_NODE; i = part->nodes[i].next)
        sum += part->nodes[i].count;
    return sum;
}

static uint16_t likeliest_child(const Partition *part, uint16_t node)
{
    uint16_t best = NO_NODE;

    for (uint16_t i = part->nodes[node].child; i != NO_NODE; i = part->nodes[i].next)
        if (best == NO_NODE || part->nodes[i].count > part->nodes[best].count ||
            (part->nodes[i].count == part->nodes[best].count &&
             part->nodes[i].symbol < part->nodes[best].symbol))
            best = i;
    return best;
}

static uint16_t find_path(const Partition *part, const uint32_t *pattern, size_t n)
{
    uint16_t node = 0;

    if (!part->nodes || n == 0)
        return NO_NODE;
    for (size_t i = 1; i < n && node != NO_NODE; i++)
        node = find_child(part, node, pattern[i]);
    return node;
}

static int predict_children(const Context *c, const Instance *in, Guesses *guesses)
{
    const Partition *part = &c->partitions[in->partition];
    double sum = (double)children_sum(part, in->node);

    for (uint16_t i = part->nodes[in->node].child; i != NO_NODE; i = part->nodes[i].next) {
        int r = guesses_add(guesses, part->nodes[i].symbol, (double)part->nodes[i].count / sum);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Follows the likeliest children from an instance. Returns 1 if this gave guesses, 0 if not, or
 * -ENOMEM. */
static int predict_run(const Context *c, const Instance *in, Guesses *guesses)
{
    uint32_t tail[4096]; /* the symbols before and in the run, for partition jumping */
    size_t n_tail = c->n_history, before = guesses->n;
    const Partition *part = &c->partitions[in->partition];
    uint16_t node = in->node;
    double likelihood = 1;
    unsigned n_steps = c->jump > 0 ? JUMPING_STEPS_MAX : 2 * c->order;

    memcpy(tail, c->history, n_tail * sizeof(*tail));
    for (unsigned step = 0; step < n_steps; step++) {
        uint16_t child = likeliest_child(part, node);
        int r;

        if (child == NO_NODE && c->jump > 0 && step > 0 && n_tail >= c->jump) {
            const uint32_t *last = tail + n_tail - c->jump;

            part = &c->partitions[last[0]];
            node = find_path(part, last, c->jump);
            child = node == NO_NODE ? NO_NODE : likeliest_child(part, node);
        }
        if (child == NO_NODE)
            break;
        likelihood *= (double)part->nodes[child].count / (double)children_sum(part, node);
        if (!(likelihood > c->threshold))
            break;
        r = guesses_add(guesses, part->nodes[child].symbol, likelihood);
        if (r < 0)
            return r;
        node = child;
        if (n_tail == ELEMENTSOF(tail)) {
            memmove(tail, tail + 1, (n_tail - 1) * sizeof(*tail));
            n_tail--;
        }
        tail[n_tail++] = part->nodes[child].symbol;
    }
    return guesses->n > before;
}

static int context_predict(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses)
{
    Context *c = (Context *)p;

    for (size_t i = 0; i < c->n_instances; i++) {
        const Instance *in = &c->instances[i];
        int r;

        if (c->partitions[in->partition].nodes[in->node].child == NO_NODE)
            continue;
        if (!c->extended)
            return predict_children(c, in, guesses);
        r = predict_run(c, in, guesses);
        if (r != 0)
            return MIN(r, 0);
    }
    return 0;
}

static size_t context_size(const Predictor *p)
{
    const Context *c = (const Context *)p;

    return c->allocated * sizeof(Partition) + c->n_nodes * sizeof(ContextNode);
}

static void pcm_defaults(PredictorParameters *p)
{
    p->partition_order = 3;
}

const PredictorOps predictor_ops_pcm = {
        .name = "pcm",
        .source = "Kroeger and Long 2001, section 2.2",
        .defaults = pcm_defaults,
        .init = pcm_init,
        PREDICTOR_OPS(context, Context),
};
const PredictorOps predictor_ops_epcm = {
        .name = "epcm",
        .source = "Kroeger and Long 2001, section 2.3",
        .init = epcm_init,
        PREDICTOR_OPS(context, Context),
};
