/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "evaluate/habits-internal.h"

#include <math.h>
#include <string.h>

#define OBJECTS_MAX 256

void habits_normalise(double *w, unsigned n)
{
    double sum = 0;

    for (unsigned i = 0; i < n; i++)
        sum += w[i];
    for (unsigned i = 0; i < n; i++)
        w[i] /= sum;
}

static int add_objects(Habits *h, Random *random, unsigned n, double total_mb, uint32_t *objects,
                       size_t *n_objects)
{
    double shares[16];

    for (unsigned i = 0; i < n; i++)
        shares[i] = 0.05 + random_uniform(random);
    habits_normalise(shares, n);
    for (unsigned i = 0; i < n; i++) {
        uint64_t bytes = ((uint64_t)(total_mb * shares[i] * 256) + 1) * 4096;
        int r = simulate_add_object(&h->objects, bytes, &objects[(*n_objects)++]);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Adds an item with objects of its own and the given libraries. */
static int add_item(Habits *h, Random *random, double mb, const uint32_t *libraries,
                    size_t n_libraries, uint32_t *ret)
{
    uint32_t objects[OBJECTS_MAX];
    size_t n = 0;
    int r;

    r = add_objects(h, random, 6 + random_below(random, 10), mb, objects, &n);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n_libraries; i++)
        objects[n++] = libraries[i];
    return simulate_add_item(&h->objects, objects, n, ret);
}

/* Draws the size of the objects that only one application uses. Together with their libraries
 * applications get sizes as in table 6.1 of the thesis: 27 to 90 MB, of which a large part is
 * shared. */
static double draw_megabytes(Random *random)
{
    return exp(log(18) + 0.7 * random_normal(random));
}

static uint64_t item_bytes(const SimulateInput *in, uint32_t item)
{
    const ItemParts *x = &in->items[item];
    uint64_t sum = 0;

    for (uint32_t i = 0; i < x->n; i++)
        sum += MIN(in->object_bytes[in->parts[x->first + i]], UINT64_MAX - sum);
    return sum;
}

/* The number of starts of an item, and of those that count as started by a person: there was no
 * other start shortly before, and the application stayed. */
typedef struct RealStarts {
    uint32_t n, n_own;
    usec_t at; /* the latest */
    bool own;
} RealStarts;

static void count_starts(const SimulateInput *in, RealStarts *starts)
{
    usec_t last = 0;

    for (size_t i = 0; i < in->n_events; i++) {
        const SimulateEvent *e = &in->events[i];
        usec_t since = e->at > last ? e->at - last : 0;
        RealStarts *s = e->item < in->n_items ? &starts[e->item] : NULL;

        if (s && e->kind == SIMULATE_START) {
            s->n++;
            s->own = since >= HABITS_ALONE;
            s->n_own += s->own;
            s->at = e->at;
        }
        if (s && e->kind == SIMULATE_EXIT && s->own && e->at < s->at + HABITS_STAYS) {
            s->own = false;
            s->n_own--;
        }
        if (e->kind == SIMULATE_START || e->kind == SIMULATE_BEGIN)
            last = MAX(last, e->at);
    }
}

int habits_find_real(const SimulateInput *in, uint64_t minimum_bytes, uint32_t **ret, size_t *ret_n)
{
    _cleanup_free_ RealStarts *starts = calloc(in->n_items + 1, sizeof(*starts));
    _cleanup_free_ uint32_t *found = calloc(in->n_items + 1, sizeof(*found));
    size_t n = 0;

    if (!starts || !found)
        return -ENOMEM;
    count_starts(in, starts);
    for (uint32_t i = 0; i < in->n_items; i++)
        if (starts[i].n_own > starts[i].n / 2 && item_bytes(in, i) >= minimum_bytes)
            found[n++] = i;
    *ret = TAKE_PTR(found);
    *ret_n = n;
    return 0;
}

/* Real applications that are copied into the tables. */
typedef struct RealItems {
    const SimulateInput *in;
    uint32_t *items; /* items that may be drawn, shuffled */
    size_t n, at;
    uint32_t *objects; /* object of the input -> object of the tables + 1 */
    uint32_t *parts;
} RealItems;

static void real_items_done(RealItems *x)
{
    free(x->items);
    free(x->objects);
    free(x->parts);
}

static int real_items_init(RealItems *x, const HabitsParameters *p, Random *random)
{
    const SimulateInput *in = p->real;

    *x = (RealItems){
            .in = in,
            .items = calloc(p->n_real_items + 1, sizeof(uint32_t)),
            .n = p->n_real_items,
            .objects = calloc(in->n_objects + 1, sizeof(uint32_t)),
            .parts = calloc(in->n_parts + 1, sizeof(uint32_t)),
    };
    if (!x->items || !x->objects || !x->parts)
        return -ENOMEM;
    if (x->n < (size_t)p->n_users * (p->n_own + p->n_desktop) + p->n_shared)
        return -EINVAL;
    for (size_t i = 0; i < x->n; i++)
        x->items[i] = p->real_items[i];
    for (size_t i = x->n; i > 1; i--) {
        size_t j = random_below(random, (uint32_t)i);
        uint32_t t = x->items[i - 1];

        x->items[i - 1] = x->items[j];
        x->items[j] = t;
    }
    return 0;
}

static int add_real_item(Habits *h, RealItems *x, uint32_t *ret)
{
    const ItemParts *it = &x->in->items[x->items[x->at++]];

    for (uint32_t i = 0; i < it->n; i++) {
        uint32_t o = x->in->parts[it->first + i];

        if (x->objects[o] == 0) {
            int r = simulate_add_object(&h->objects, x->in->object_bytes[o], &x->parts[i]);

            if (r < 0)
                return r;
            x->objects[o] = x->parts[i] + 1;
        }
        x->parts[i] = x->objects[o] - 1;
    }
    return simulate_add_item(&h->objects, x->parts, it->n, ret);
}

static int draw_real_tables(Habits *h, Random *random)
{
    _cleanup_(real_items_done) RealItems x = {0};
    uint32_t shared[APPLICATIONS_MAX];
    int r = real_items_init(&x, &h->p, random);

    for (unsigned i = 0; r >= 0 && i < h->p.n_shared; i++)
        r = add_real_item(h, &x, &shared[i]);
    for (unsigned i = 0; i < h->p.n_users; i++) {
        HabitsUser *u = &h->users[i];

        for (unsigned j = 0; r >= 0 && j < h->p.n_desktop; j++)
            r = add_real_item(h, &x, &u->desktop[j]);
        for (unsigned j = 0; r >= 0 && j < h->p.n_own; j++)
            r = add_real_item(h, &x, &u->applications[u->n++].item);
        for (unsigned j = 0; r >= 0 && j < h->p.n_shared; j++)
            u->applications[u->n++].item = shared[j];
    }
    return r;
}

static int draw_drawn_tables(Habits *h, Random *random)
{
    uint32_t common[8], shared[APPLICATIONS_MAX];
    size_t n_common = 0;
    int r;

    r = add_objects(h, random, 3, 12, common, &n_common);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < h->p.n_shared; i++) {
        r = add_item(h, random, draw_megabytes(random), common, n_common, &shared[i]);
        if (r < 0)
            return r;
    }
    for (unsigned i = 0; i < h->p.n_users; i++) {
        HabitsUser *u = &h->users[i];
        uint32_t libraries[16];
        size_t n = n_common;

        memcpy(libraries, common, n_common * sizeof(*common));
        r = add_objects(h, random, 4, 25, libraries, &n);
        if (r < 0)
            return r;
        for (unsigned j = 0; j < h->p.n_desktop; j++) {
            r = add_item(h, random, draw_megabytes(random), libraries, n, &u->desktop[j]);
            if (r < 0)
                return r;
        }
        for (unsigned j = 0; j < h->p.n_own; j++) {
            r = add_item(h, random, draw_megabytes(random), libraries, n,
                         &u->applications[u->n++].item);
            if (r < 0)
                return r;
        }
        for (unsigned j = 0; j < h->p.n_shared; j++)
            u->applications[u->n++].item = shared[j];
    }
    return 0;
}

int habits_draw_tables(Habits *h, Random *random)
{
    return h->p.real ? draw_real_tables(h, random) : draw_drawn_tables(h, random);
}
