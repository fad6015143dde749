/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The neighbours and the chains of the applications of a history. */

#include "chains/user-history.h"

#include <string.h>

/* Returns the position of the first neighbour that is not less than `other`. Each step adds 0 or
 * `half` without a branch: half of the branches would be mispredicted, and these searches are most
 * of the cost of an event. */
static uint32_t neighbour_position(const ChainsApplication *a, uint32_t other)
{
    uint32_t low = 0, n = a->n_neighbours;

    while (n > 0) {
        uint32_t half = (n + 1) / 2;

        low += half & -(uint32_t)(a->neighbours[low + half - 1].other < other);
        n -= half;
    }
    return low;
}

Neighbour *user_history_find_neighbour(const UserHistory *h, uint32_t a, uint32_t b)
{
    const ChainsApplication *x;
    uint32_t at;

    if (a == b || a >= h->n_applications || b >= h->n_applications)
        return NULL;
    x = &h->applications[a];
    at = neighbour_position(x, b);
    return at < x->n_neighbours && x->neighbours[at].other == b ? &x->neighbours[at] : NULL;
}

ChainsPair *user_history_find_pair(const UserHistory *h, uint32_t a, uint32_t b)
{
    const Neighbour *neighbour = user_history_find_neighbour(h, a, b);

    return neighbour && neighbour->pair != CHAINS_NONE ? &h->pairs[neighbour->pair] : NULL;
}

static int reserve_neighbour(ChainsApplication *a)
{
    size_t allocated = a->allocated_neighbours;
    void *neighbours = a->neighbours;
    int r = grow_array(&neighbours, &allocated, (size_t)a->n_neighbours + 1,
                       sizeof(*a->neighbours));

    if (r < 0)
        return r;
    a->neighbours = neighbours;
    a->allocated_neighbours = (uint32_t)allocated;
    return 0;
}

static void insert_neighbour(ChainsApplication *a, uint32_t other)
{
    uint32_t at = neighbour_position(a, other);

    memmove(a->neighbours + at + 1, a->neighbours + at,
            (a->n_neighbours - at) * sizeof(*a->neighbours));
    a->neighbours[at] = (Neighbour){other, CHAINS_NONE};
    a->n_neighbours++;
}

int user_history_add_neighbours(UserHistory *h, uint32_t a, uint32_t b)
{
    int r;

    if (h->n_co_occurring >= CHAINS_PAIRS_MAX)
        return -E2BIG;
    r = reserve_neighbour(&h->applications[a]);
    if (r >= 0)
        r = reserve_neighbour(&h->applications[b]);
    if (r < 0)
        return r;
    insert_neighbour(&h->applications[a], b);
    insert_neighbour(&h->applications[b], a);
    h->n_co_occurring++;
    return 0;
}

/* Grows the array by only a quarter, because chains take most of the memory. */
static int reserve_pair(UserHistory *h)
{
    size_t n = h->allocated_pairs + MAX(h->allocated_pairs / 4, (size_t)16);
    ChainsPair *pairs;

    if (h->n_pairs < h->allocated_pairs)
        return 0;
    pairs = reallocarray(h->pairs, n, sizeof(*pairs));
    if (!pairs)
        return -ENOMEM;
    h->pairs = pairs;
    h->allocated_pairs = n;
    return 0;
}

int user_history_add_pair(UserHistory *h, uint32_t x, uint32_t y, ChainsPair **ret)
{
    uint32_t a = MIN(x, y), b = MAX(x, y);
    ChainsApplication *p = &h->applications[a], *q = &h->applications[b];
    int r;

    if (!user_history_find_neighbour(h, a, b)) {
        r = user_history_add_neighbours(h, a, b);
        if (r < 0)
            return r;
    }
    r = reserve_pair(h);
    if (r < 0)
        return r;
    p->neighbours[neighbour_position(p, b)].pair = (uint32_t)h->n_pairs;
    q->neighbours[neighbour_position(q, a)].pair = (uint32_t)h->n_pairs;
    h->pairs[h->n_pairs] = (ChainsPair){.a = a, .b = b};
    *ret = &h->pairs[h->n_pairs++];
    return 0;
}
