/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Merges chains. If only one side has a pair, the other side has observed the two applications
 * without their chain. All observations of that other side count as made before the merged chain
 * began, so they are added to the `before` sums of the merged pair. The four states count only what
 * was observed since the chain began. Merging only adds decayed sums, so the order does not
 * matter. */

#include "chains/chains-internal.h"

#include <string.h>

static const ChainsApplication nothing;

/* Adds a sum that is `later` generations older. */
static void absorb(DecayedSum *to, DecayedSum x, uint64_t later)
{
    *to = decayed_sum_add(*to, decayed_sum_advance(x, later));
}

/* Counts everything that a history has observed of two applications as observed before their chain
 * began. */
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

/* Adds what the history `x` has counted for two neighbours. */
static int fold_neighbour(UserHistory *to, UserHistory *x, uint32_t a, const Neighbour *neighbour,
                          const uint32_t *there, uint64_t later)
{
    ChainsPair *q = neighbour->pair == CHAINS_NONE ? NULL : &x->pairs[neighbour->pair], *p;
    const Neighbour *mine = user_history_find_neighbour(to, there[a], there[neighbour->other]);
    uint32_t co_occurrences = q ? q->co_occurrences : 1;
    int r;

    if (!mine && !q)
        return user_history_add_neighbours(to, there[a], there[neighbour->other]);
    if (mine && mine->pair != CHAINS_NONE)
        p = &to->pairs[mine->pair];
    else {
        co_occurrences += mine != NULL;
        r = user_history_add_pair(to, there[a], there[neighbour->other], &p);
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

/* A history that is added to another, and the numbers that the same applications have in both. */
typedef struct Folding {
    UserHistory *to, *from;
    uint64_t later;  /* number of generations by which `from` is older */
    uint32_t *there; /* application of `from` -> of `to` */
    uint32_t *here;  /* application of `to` -> of `from`; CHAINS_NONE: `from` does not have it */
} Folding;

static void folding_done(Folding *f)
{
    free(f->there);
    free(f->here);
}

/* Matches applications by their names, and adds to `to` those that it lacks. */
static int match_applications(Folding *f, Chains *c, const Chains *from)
{
    f->there = calloc(f->from->n_applications, sizeof(*f->there));
    if (!f->there)
        return -ENOMEM;
    f->there[CHAINS_BEGIN] = CHAINS_BEGIN;
    for (size_t i = 1; i < f->from->n_applications; i++) {
        uint32_t id = f->from->applications[i].id;
        int r;

        if (id >= from->names.n)
            return -EINVAL;
        r = chains_add_name(c, from->names.names[id], &id);
        if (r >= 0)
            r = user_history_add(f->to, id, &f->there[i]);
        if (r < 0)
            return r;
    }
    f->here = malloc(f->to->n_applications * sizeof(*f->here));
    if (!f->here)
        return -ENOMEM;
    memset(f->here, 0xff, f->to->n_applications * sizeof(*f->here));
    for (size_t i = 0; i < f->from->n_applications; i++)
        f->here[f->there[i]] = (uint32_t)i;
    return 0;
}

/* For each pair that only `to` has, counts all sums of its applications in `from` as observed
 * before the chain began. */
static void extend_own_pairs(const Folding *f)
{
    for (size_t i = 0; i < f->to->n_pairs; i++) {
        ChainsPair *p = &f->to->pairs[i];
        uint32_t a = f->here[p->a], b = f->here[p->b];

        if (a == CHAINS_NONE || b == CHAINS_NONE || !user_history_find_pair(f->from, a, b))
            absorb_before(p, f->from->time, a == CHAINS_NONE ? &nothing : &f->from->applications[a],
                          b == CHAINS_NONE ? &nothing : &f->from->applications[b], f->later);
    }
}

static int fold_neighbours(const Folding *f)
{
    for (uint32_t a = 0; a < f->from->n_applications; a++)
        for (uint32_t i = 0; i < f->from->applications[a].n_neighbours; i++) {
            const Neighbour *neighbour = &f->from->applications[a].neighbours[i];
            int r;

            if (neighbour->other < a)
                continue;
            r = fold_neighbour(f->to, f->from, a, neighbour, f->there, f->later);
            if (r < 0)
                return r;
        }
    return 0;
}

static void fold_sums(const Folding *f)
{
    DecayedSum *ours[CHAINS_HISTORY_SUMS], *theirs[CHAINS_HISTORY_SUMS];

    chains_history_sums(f->to, ours);
    chains_history_sums(f->from, theirs);
    for (size_t j = 0; j < CHAINS_HISTORY_SUMS; j++)
        absorb(ours[j], *theirs[j], f->later);
    for (size_t i = 0; i < f->from->n_applications; i++) {
        chains_application_sums(&f->to->applications[f->there[i]], ours);
        chains_application_sums(&f->from->applications[i], theirs);
        for (size_t j = 0; j < CHAINS_APPLICATION_SUMS; j++)
            absorb(ours[j], *theirs[j], f->later);
    }
}

/* Adds a history of `from` to the history `to` of `c`. The pairs are merged first, because their
 * `before` sums are computed from the application sums as these were before the merge. */
static int fold_history(Chains *c, UserHistory *to, const Chains *from, UserHistory *x)
{
    _cleanup_(folding_done)
            Folding f = {.to = to, .from = x, .later = c->generation - from->generation};
    int r = match_applications(&f, c, from);

    if (r < 0)
        return r;
    extend_own_pairs(&f);
    r = fold_neighbours(&f);
    if (r < 0)
        return r;
    fold_sums(&f);
    return chains_add_log(c, to, &x->log, f.there);
}

static int fold(Chains *c, const Chains *from)
{
    if (chains_busy(from))
        return -EBUSY;
    for (size_t i = 0; i < from->n_histories; i++) {
        UserHistory *to;
        int r = chains_history(c, from->histories[i]->user, &to);

        if (r >= 0)
            r = fold_history(c, to, from, from->histories[i]);
        if (r < 0)
            return r;
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
    c->clock = decay_clock_later(a->clock, b->clock);
    c->revision = (a->revision + b->revision) & INT64_MAX;
    r = fold(c, a);
    if (r >= 0)
        r = fold(c, b);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(c);
    return 0;
}
