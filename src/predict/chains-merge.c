/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Names, and merging. A pair that one side has not seen has, on that side, everything "before it
 * was first seen": so a merged pair's `before` grows by that side's sums, and its four states count
 * only what was observed of it. All of it is addition of DecayedSums: the order does not matter. */

#include "predict/chains-internal.h"

#include <string.h>

#define HASH_NONFATAL_OOM      1
#define uthash_nonfatal_oom(e) ((e)->lost = true)
#include <uthash.h>

/* name -> id */
typedef struct ChainsName {
    UT_hash_handle hh;
    char *name;
    uint32_t id;
    bool lost;
} ChainsName;

void chains_names_done(Chains *c)
{
    ChainsName *n, *next;

    HASH_ITER (hh, c->names_index, n, next) {
        HASH_DEL(c->names_index, n);
        free(n->name);
        free(n);
    }
    free(c->names);
}

int chains_find_name(const Chains *c, const char *name, uint32_t *ret)
{
    ChainsName *n;

    HASH_FIND_STR(c->names_index, name, n);
    if (!n)
        return -ENOENT;
    *ret = n->id;
    return 0;
}

int chains_add_name(Chains *c, const char *name, uint32_t *ret)
{
    ChainsName *n = NULL;
    int r;

    HASH_FIND_STR(c->names_index, name, n);
    if (n) {
        *ret = n->id;
        return 0;
    }
    if (c->n_names >= CHAINS_IDS_MAX)
        return -E2BIG;
    r = grow_array(&c->names, &c->allocated_names, c->n_names + 1, sizeof(*c->names));
    if (r < 0)
        return r;
    n = calloc(1, sizeof(*n));
    if (n)
        n->name = strdup(name);
    if (!n || !n->name) {
        free(n);
        return -ENOMEM;
    }
    n->id = (uint32_t)c->n_names;
    HASH_ADD_KEYPTR(hh, c->names_index, n->name, strlen(n->name), n);
    if (n->lost) {
        free(n->name);
        free(n);
        return -ENOMEM;
    }
    c->names[c->n_names++] = n->name;
    *ret = n->id;
    return 0;
}

void chains_history_sums(UserHistory *h, DecayedSum *ret[static CHAINS_HISTORY_SUMS])
{
    ret[0] = &h->time;
    ret[1] = &h->sessions;
    for (size_t i = 0; i < CHAINS_AGES; i++) {
        ret[2 + 2 * i] = &h->age_time[i];
        ret[3 + 2 * i] = &h->age_ended[i];
    }
}

void chains_application_sums(ChainsApplication *a, DecayedSum *ret[static CHAINS_APPLICATION_SUMS])
{
    DecayedSum *all[CHAINS_APPLICATION_SUMS] = {
            &a->starts, &a->exits, &a->on, &a->sessions, &a->last, &a->next_self, &a->last_self};

    memcpy(ret, all, sizeof(all));
}

void chains_pair_sums(ChainsPair *p, bool swapped, DecayedSum *ret[static CHAINS_PAIR_SUMS])
{
    unsigned a = swapped, b = !swapped;
    DecayedSum *all[CHAINS_PAIR_SUMS] = {
            &p->both,
            &p->starts[a],
            &p->starts[b],
            &p->exits[a],
            &p->exits[b],
            &p->next[a],
            &p->next[b],
            &p->last[a],
            &p->last[b],
            &p->before_time,
            &p->before_on[a],
            &p->before_on[b],
            &p->before_starts[a],
            &p->before_starts[b],
            &p->before_exits[a],
            &p->before_exits[b],
    };

    memcpy(ret, all, sizeof(all));
}

static void each_of_history(UserHistory *h, DecayedSum (*f)(DecayedSum, uint64_t),
                            uint64_t argument)
{
    DecayedSum *sums[MAX(CHAINS_PAIR_SUMS, CHAINS_HISTORY_SUMS)];

    chains_history_sums(h, sums);
    for (size_t j = 0; j < CHAINS_HISTORY_SUMS; j++)
        *sums[j] = f(*sums[j], argument);
    for (size_t i = 0; i < h->n_applications; i++) {
        chains_application_sums(&h->applications[i], sums);
        for (size_t j = 0; j < CHAINS_APPLICATION_SUMS; j++)
            *sums[j] = f(*sums[j], argument);
    }
    for (size_t i = 0; i < h->n_pairs; i++) {
        chains_pair_sums(&h->pairs[i], false, sums);
        for (size_t j = 0; j < CHAINS_PAIR_SUMS; j++)
            *sums[j] = f(*sums[j], argument);
    }
}

void chains_each_sum(Chains *c, DecayedSum (*f)(DecayedSum, uint64_t), uint64_t argument)
{
    for (size_t i = 0; i < c->n_histories; i++)
        each_of_history(c->histories[i], f, argument);
    for (size_t b = 0; b < CHAINS_BUCKETS; b++)
        for (size_t k = 0; k < CHAINS_EXPERTS; k++) {
            c->attributed[b][k] = f(c->attributed[b][k], argument);
            c->expected[b][k] = f(c->expected[b][k], argument);
        }
}

bool chains_is_full(const Chains *c)
{
    DecayedSum *sums[CHAINS_HISTORY_SUMS];

    for (size_t i = 0; i < c->n_histories; i++) {
        chains_history_sums(c->histories[i], sums);
        for (size_t j = 0; j < CHAINS_HISTORY_SUMS; j++)
            if (decayed_sum_is_full(*sums[j]))
                return true;
    }
    return false;
}

static const ChainsApplication nothing;

/* Sums of x, seen from a later generation, onto those of `to`. */
static void absorb(DecayedSum *to, DecayedSum x, uint64_t later)
{
    *to = decayed_sum_add(*to, decayed_sum_advance(x, later));
}

/* Everything that happened to two applications in a history lies before a pair was seen there. */
static void absorb_before(ChainsPair *p, DecayedSum time, const ChainsApplication *a,
                          const ChainsApplication *b, uint64_t later)
{
    const ChainsApplication *x[2] = {a, b};

    absorb(&p->before_time, time, later);
    for (unsigned i = 0; i < 2; i++) {
        absorb(&p->before_on[i], x[i]->on, later);
        absorb(&p->before_starts[i], x[i]->starts, later);
        absorb(&p->before_exits[i], x[i]->exits, later);
    }
}

/* Adds what x knows of two applications that have met there. */
static int fold_neighbour(UserHistory *to, UserHistory *x, uint32_t a, const Neighbour *neighbour,
                          const uint32_t *there, uint64_t later)
{
    ChainsPair *q = neighbour->pair == CHAINS_NONE ? NULL : &x->pairs[neighbour->pair], *p;
    const Neighbour *mine = chains_find_neighbour(to, there[a], there[neighbour->other]);
    uint32_t co_occurrences = q ? q->co_occurrences : 1;
    int r;

    if (!mine && !q)
        return chains_add_neighbours(to, there[a], there[neighbour->other]);
    if (mine && mine->pair != CHAINS_NONE)
        p = &to->pairs[mine->pair];
    else {
        co_occurrences += mine != NULL;
        r = chains_add_pair(to, there[a], there[neighbour->other], &p);
        if (r < 0)
            return r;
        absorb_before(p, to->time, &to->applications[p->a], &to->applications[p->b], 0);
        if (!q)
            absorb_before(p, x->time, &x->applications[p->a == there[a] ? a : neighbour->other],
                          &x->applications[p->a == there[a] ? neighbour->other : a], later);
    }
    p->co_occurrences = co_occurrences > UINT32_MAX - p->co_occurrences
                                ? UINT32_MAX
                                : p->co_occurrences + co_occurrences;
    if (q) {
        DecayedSum *ours[CHAINS_PAIR_SUMS], *theirs[CHAINS_PAIR_SUMS];

        chains_pair_sums(p, false, ours);
        chains_pair_sums(q, there[q->a] != p->a, theirs);
        for (size_t j = 0; j < CHAINS_PAIR_SUMS; j++)
            absorb(ours[j], *theirs[j], later);
    }
    return 0;
}

/* Adds the history x of `from` to the history `to` of `c`, which is of `later` generations on. */
static int fold_history(Chains *c, UserHistory *to, const Chains *from, UserHistory *x,
                        uint64_t later)
{
    _cleanup_free_ uint32_t *there = calloc(x->n_applications, sizeof(*there)); /* x -> to */
    _cleanup_free_ uint32_t *here = NULL;                                       /* to -> x */
    DecayedSum *sums[CHAINS_HISTORY_SUMS], *their_sums[CHAINS_HISTORY_SUMS];
    size_t n_before = to->n_pairs;
    int r;

    if (!there)
        return -ENOMEM;
    there[CHAINS_BEGIN] = CHAINS_BEGIN;
    for (size_t i = 1; i < x->n_applications; i++) {
        uint32_t id = x->applications[i].id;

        if (id >= from->n_names)
            return -EINVAL;
        r = chains_add_name(c, from->names[id], &id);
        if (r >= 0)
            r = chains_intern(to, id, &there[i]);
        if (r < 0)
            return r;
    }
    here = malloc(to->n_applications * sizeof(*here));
    if (!here)
        return -ENOMEM;
    memset(here, 0xff, to->n_applications * sizeof(*here));
    for (size_t i = 0; i < x->n_applications; i++)
        here[there[i]] = (uint32_t)i;

    for (size_t i = 0; i < n_before; i++) {
        ChainsPair *p = &to->pairs[i];
        uint32_t a = here[p->a], b = here[p->b];

        if (a == CHAINS_NONE || b == CHAINS_NONE || !chains_find_pair(x, a, b))
            absorb_before(p, x->time, a == CHAINS_NONE ? &nothing : &x->applications[a],
                          b == CHAINS_NONE ? &nothing : &x->applications[b], later);
    }
    for (uint32_t a = 0; a < x->n_applications; a++)
        for (uint32_t i = 0; i < x->applications[a].n_neighbours; i++) {
            const Neighbour *neighbour = &x->applications[a].neighbours[i];

            if (neighbour->other < a)
                continue;
            r = fold_neighbour(to, x, a, neighbour, there, later);
            if (r < 0)
                return r;
        }
    chains_history_sums(to, sums);
    chains_history_sums(x, their_sums);
    for (size_t j = 0; j < CHAINS_HISTORY_SUMS; j++)
        absorb(sums[j], *their_sums[j], later);
    for (size_t i = 0; i < x->n_applications; i++) {
        DecayedSum *mine[CHAINS_APPLICATION_SUMS], *theirs[CHAINS_APPLICATION_SUMS];

        chains_application_sums(&to->applications[there[i]], mine);
        chains_application_sums(&x->applications[i], theirs);
        for (size_t j = 0; j < CHAINS_APPLICATION_SUMS; j++)
            absorb(mine[j], *theirs[j], later);
    }
    return 0;
}

static int fold(Chains *c, const Chains *x)
{
    uint64_t later = c->generation - x->generation;

    for (size_t i = 0; i < x->n_histories; i++) {
        UserHistory *to;
        int r;

        if (x->histories[i]->in_session)
            return -EBUSY;
        r = chains_history(c, x->histories[i]->user, &to);
        if (r >= 0)
            r = fold_history(c, to, x, x->histories[i], later);
        if (r < 0)
            return r;
    }
    for (size_t b = 0; b < CHAINS_BUCKETS; b++)
        for (size_t k = 0; k < CHAINS_EXPERTS; k++) {
            absorb(&c->attributed[b][k], x->attributed[b][k], later);
            absorb(&c->expected[b][k], x->expected[b][k], later);
        }
    return 0;
}

int chains_merge(const Chains *a, const Chains *b, Chains **ret)
{
    _cleanup_chains_ Chains *c = NULL;
    int r;

    if (a->halflife_usec != b->halflife_usec || a->window_usec != b->window_usec)
        return -EINVAL;
    r = chains_new(a->halflife_usec, a->window_usec, &c);
    if (r < 0)
        return r;
    c->generation = MAX(a->generation, b->generation);
    r = fold(c, a);
    if (r >= 0)
        r = fold(c, b);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(c);
    return 0;
}
