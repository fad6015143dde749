/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What is done to chains beside merging them: forgetting what has faded, and taking back what a
 * wrong clock did. chains.h says why apart. */

#include "predict/chains-internal.h"

#define NEGLIGIBLE (1.0 / 1024)

/* Less than so much of one event now. */
static bool few(const Chains *c, DecayedSum events)
{
    return chains_value(c, events) < NEGLIGIBLE;
}

/* Less than so much of the time within which two starts are together. */
static bool brief(const Chains *c, DecayedSum msec)
{
    return chains_value(c, msec) * (double)USEC_PER_MSEC < NEGLIGIBLE * (double)c->window;
}

/* Nothing that still counts was ever seen of the pair, though nearly all that still counts of its
 * world was seen since it began (or nothing of its world counts). A young chain has seen nothing
 * either: it stays. */
static bool pair_faded(const Chains *c, const ChainsWorld *w, const ChainsPair *p)
{
    DecayedSum events = {0};

    for (unsigned i = 0; i < 2; i++) {
        events = decayed_sum_add(
                events, decayed_sum_add(p->starts[i], decayed_sum_add(p->exits[i], p->next[i])));
        if (!brief(c, p->last[i]))
            return false;
    }
    return few(c, events) && brief(c, p->both) &&
           (few(c, w->sessions) ||
            chains_value(c, p->before_time) <= NEGLIGIBLE * chains_value(c, w->time));
}

static bool application_faded(const Chains *c, const ChainsApplication *x)
{
    return few(c, x->starts) && few(c, x->exits) && brief(c, x->on) && brief(c, x->last);
}

/* Marks what stays of a world: applications that count, and those that a chain that counts needs.
 */
static void mark(const Chains *c, const ChainsWorld *w, bool *keep)
{
    keep[CHAINS_BEGIN] = true;
    for (size_t i = 1; i < w->n_applications; i++)
        keep[i] = !application_faded(c, &w->applications[i]);
    for (size_t i = 0; i < w->n_pairs; i++)
        if (!pair_faded(c, w, &w->pairs[i]))
            keep[w->pairs[i].a] = keep[w->pairs[i].b] = true;
}

static void copy_sums(DecayedSum *const *to, DecayedSum *const *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        *to[i] = *from[i];
}

static int copy_application(Chains *c, ChainsWorld *to, const Chains *from, ChainsApplication *x,
                            uint32_t *ret)
{
    DecayedSum *ours[CHAINS_APPLICATION_SUMS], *theirs[CHAINS_APPLICATION_SUMS];
    uint32_t id;
    int r;

    if (x->id == CHAINS_NONE)
        *ret = CHAINS_BEGIN;
    else {
        if (x->id >= from->n_names)
            return -EINVAL;
        r = chains_add_name(c, from->names[x->id], &id);
        if (r >= 0)
            r = chains_intern(to, id, ret);
        if (r < 0)
            return r;
    }
    chains_application_sums(&to->applications[*ret], ours);
    chains_application_sums(x, theirs);
    copy_sums(ours, theirs, CHAINS_APPLICATION_SUMS);
    return 0;
}

/* Two applications that have met, if both stay and what they have is not a chain that has faded. */
static int copy_partner(ChainsWorld *to, const Chains *from, ChainsWorld *w, uint32_t a,
                        const ChainsPartner *partner, const uint32_t *there)
{
    ChainsPair *q = partner->pair == CHAINS_NONE ? NULL : &w->pairs[partner->pair], *p;
    DecayedSum *ours[CHAINS_PAIR_SUMS], *theirs[CHAINS_PAIR_SUMS];
    uint32_t x = there[a], y = there[partner->other];
    int r;

    if (x == CHAINS_NONE || y == CHAINS_NONE)
        return 0;
    if (!q)
        return chains_add_partners(to, x, y);
    if (pair_faded(from, w, q))
        return 0;
    r = chains_add_pair(to, x, y, &p);
    if (r < 0)
        return r;
    p->together = q->together;
    chains_pair_sums(p, false, ours);
    chains_pair_sums(q, there[q->a] != p->a, theirs);
    copy_sums(ours, theirs, CHAINS_PAIR_SUMS);
    return 0;
}

static int copy_world(Chains *c, const Chains *from, ChainsWorld *w)
{
    _cleanup_free_ uint32_t *there = calloc(w->n_applications, sizeof(*there)); /* w -> to */
    _cleanup_free_ bool *keep = calloc(w->n_applications, sizeof(*keep));
    DecayedSum *ours[CHAINS_WORLD_SUMS], *theirs[CHAINS_WORLD_SUMS];
    size_t n_kept = 0;
    ChainsWorld *to;
    int r;

    if (!there || !keep)
        return -ENOMEM;
    mark(from, w, keep);
    for (size_t i = 0; i < w->n_applications; i++)
        n_kept += keep[i];
    if (w->user != UID_INVALID && n_kept == 1 && few(from, w->sessions))
        return 0; /* a user who has been gone for long */
    r = chains_world(c, w->user, &to);
    if (r < 0)
        return r;
    chains_world_sums(to, ours);
    chains_world_sums(w, theirs);
    copy_sums(ours, theirs, CHAINS_WORLD_SUMS);
    for (size_t i = 0; i < w->n_applications; i++) {
        there[i] = CHAINS_NONE;
        r = keep[i] ? copy_application(c, to, from, &w->applications[i], &there[i]) : 0;
        if (r < 0)
            return r;
    }
    for (uint32_t a = 0; a < w->n_applications; a++)
        for (uint32_t i = 0; i < w->applications[a].n_partners; i++) {
            const ChainsPartner *partner = &w->applications[a].partners[i];

            r = partner->other < a ? 0 : copy_partner(to, from, w, a, partner, there);
            if (r < 0)
                return r;
        }
    return 0;
}

/* An event at the very end of the generation, which weighs most, is taken for one of now. */
static DecayedSum rescale(DecayedSum f, uint64_t to)
{
    return decayed_sum_rescale(f, to, UINT64_C(1) << (DECAYED_SUM_SPAN + DECAYED_SUM_BITS));
}

int chains_settle_clock(Chains *c, usec_t realtime)
{
    usec_t t = MIN(realtime, USEC_INFINITY - 1);
    uint64_t generation = decayed_sum_generation(t, c->halflife);

    if (c->generation <= generation + 1)
        return 0;
    for (size_t i = 0; i < c->n_worlds; i++)
        if (c->worlds[i]->in_session)
            return -EBUSY;
    chains_each_sum(c, rescale, decayed_sum_weight(t, c->halflife));
    c->generation = generation;
    c->weight = decayed_sum_weight(t, c->halflife);
    return 0;
}

int chains_prune(const Chains *c, Chains **ret)
{
    _cleanup_chains_ Chains *pruned = NULL;
    int r;

    for (size_t i = 0; i < c->n_worlds; i++)
        if (c->worlds[i]->in_session)
            return -EBUSY;
    r = chains_new(c->halflife, c->window, &pruned);
    for (size_t i = 0; r >= 0 && i < c->n_worlds; i++)
        r = copy_world(pruned, c, c->worlds[i]);
    if (r < 0)
        return r;
    pruned->generation = c->generation;
    pruned->weight = c->weight;
    pruned->seen = c->seen;
    pruned->now = c->now;
    for (size_t b = 0; b < CHAINS_BUCKETS; b++)
        for (size_t k = 0; k < CHAINS_EXPERTS; k++) {
            pruned->attributed[b][k] = c->attributed[b][k];
            pruned->expected[b][k] = c->expected[b][k];
        }
    *ret = TAKE_PTR(pruned);
    return 0;
}
