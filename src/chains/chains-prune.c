/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prunes chains, and corrects chains that were made with a wrong clock. chains.h explains why
 * merging does neither. */

#include "chains/chains-internal.h"

#define NEGLIGIBLE (1.0 / 1024)

/* Returns true if less than NEGLIGIBLE of one event still counts. */
static bool few(const Chains *c, DecayedSum events)
{
    return chains_value(c, events) < NEGLIGIBLE;
}

/* Returns true if less than NEGLIGIBLE of the window still counts. */
static bool brief(const Chains *c, DecayedSum time)
{
    return chains_usec(c, time) < NEGLIGIBLE * (double)c->window_usec;
}

/* Returns true if a chain counts nothing and is old, or if neither the chain nor its history counts
 * anything. A chain is old if nearly everything that its history counts was observed since the
 * chain began. A young chain stays, even if it counts nothing. */
static bool pair_decayed(const Chains *c, const UserHistory *h, const ChainsPair *p)
{
    DecayedSum events = {0};

    for (unsigned i = 0; i < 2; i++) {
        events = decayed_sum_add(
                events, decayed_sum_add(p->starts[i], decayed_sum_add(p->exits[i], p->next[i])));
        if (!brief(c, p->last[i]))
            return false;
    }
    return few(c, events) && brief(c, p->both) &&
           (few(c, h->sessions) ||
            chains_value(c, p->before_time) <= NEGLIGIBLE * chains_value(c, h->time));
}

static bool application_decayed(const Chains *c, const ChainsApplication *x)
{
    return few(c, x->starts) && few(c, x->exits) && brief(c, x->on) && brief(c, x->last);
}

/* Marks the applications that stay: those that have not decayed, and those of chains that have not
 * decayed. */
static void mark(const Chains *c, const UserHistory *h, bool *keep)
{
    keep[CHAINS_BEGIN] = true;
    for (size_t i = 1; i < h->n_applications; i++)
        keep[i] = !application_decayed(c, &h->applications[i]);
    for (size_t i = 0; i < h->n_pairs; i++)
        if (!pair_decayed(c, h, &h->pairs[i]))
            keep[h->pairs[i].a] = keep[h->pairs[i].b] = true;
}

static void copy_sums(DecayedSum *const *to, DecayedSum *const *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        *to[i] = *from[i];
}

static int copy_application(Chains *c, UserHistory *to, const Chains *from, ChainsApplication *x,
                            uint32_t *ret)
{
    DecayedSum *ours[CHAINS_APPLICATION_SUMS], *theirs[CHAINS_APPLICATION_SUMS];
    uint32_t id;
    int r;

    if (x->id == CHAINS_NONE)
        *ret = CHAINS_BEGIN;
    else {
        if (x->id >= from->names.n)
            return -EINVAL;
        r = chains_add_name(c, from->names.names[x->id], &id);
        if (r >= 0)
            r = user_history_add(to, id, ret);
        if (r < 0)
            return r;
    }
    chains_application_sums(&to->applications[*ret], ours);
    chains_application_sums(x, theirs);
    copy_sums(ours, theirs, CHAINS_APPLICATION_SUMS);
    return 0;
}

/* Copies two neighbours if both stay, unless their chain has decayed. */
static int copy_neighbour(UserHistory *to, const Chains *from, UserHistory *h, uint32_t a,
                          const Neighbour *neighbour, const uint32_t *there)
{
    ChainsPair *q = neighbour->pair == CHAINS_NONE ? NULL : &h->pairs[neighbour->pair], *p;
    DecayedSum *ours[CHAINS_PAIR_SUMS], *theirs[CHAINS_PAIR_SUMS];
    uint32_t x = there[a], y = there[neighbour->other];
    int r;

    if (x == CHAINS_NONE || y == CHAINS_NONE)
        return 0;
    if (!q)
        return user_history_add_neighbours(to, x, y);
    if (pair_decayed(from, h, q))
        return 0;
    r = user_history_add_pair(to, x, y, &p);
    if (r < 0)
        return r;
    p->co_occurrences = q->co_occurrences;
    chains_pair_sums(p, false, ours);
    chains_pair_sums(q, there[q->a] != p->a, theirs);
    copy_sums(ours, theirs, CHAINS_PAIR_SUMS);
    return 0;
}

static int copy_history(Chains *c, const Chains *from, UserHistory *h)
{
    _cleanup_free_ uint32_t *there = calloc(h->n_applications, sizeof(*there)); /* h -> to */
    _cleanup_free_ bool *keep = calloc(h->n_applications, sizeof(*keep));
    DecayedSum *ours[CHAINS_HISTORY_SUMS], *theirs[CHAINS_HISTORY_SUMS];
    size_t n_kept = 0;
    UserHistory *to;
    int r;

    if (!there || !keep)
        return -ENOMEM;
    mark(from, h, keep);
    for (size_t i = 0; i < h->n_applications; i++)
        n_kept += keep[i];
    if (h->user != UID_INVALID && n_kept == 1 && few(from, h->sessions))
        return 0; /* this user has not logged in for a long time */
    r = chains_history(c, h->user, &to);
    if (r < 0)
        return r;
    chains_history_sums(to, ours);
    chains_history_sums(h, theirs);
    copy_sums(ours, theirs, CHAINS_HISTORY_SUMS);
    for (size_t i = 0; i < h->n_applications; i++) {
        there[i] = CHAINS_NONE;
        r = keep[i] ? copy_application(c, to, from, &h->applications[i], &there[i]) : 0;
        if (r < 0)
            return r;
    }
    for (uint32_t a = 0; a < h->n_applications; a++)
        for (uint32_t i = 0; i < h->applications[a].n_neighbours; i++) {
            const Neighbour *neighbour = &h->applications[a].neighbours[i];

            r = neighbour->other < a ? 0 : copy_neighbour(to, from, h, a, neighbour, there);
            if (r < 0)
                return r;
        }
    return chains_add_log(c, to, &h->log, there);
}

/* The largest weight, that of an event at the end of a generation. */
#define WEIGHT_MAX (UINT64_C(1) << (DECAYED_SUM_SPAN + DECAYED_SUM_BITS))

static DecayedSum rescale(DecayedSum f, uint64_t to)
{
    return decayed_sum_rescale(f, to, WEIGHT_MAX);
}

/* Converts a sum so that an event of the weight `from` gets the largest weight. */
static DecayedSum enlarge(DecayedSum f, uint64_t from)
{
    return decayed_sum_rescale(f, WEIGHT_MAX, from);
}

int chains_settle_clock(Chains *c, usec_t realtime)
{
    usec_t now = MIN(realtime, USEC_INFINITY - 1);
    usec_t t = decay_clock_settled(&c->clock, now, c->halflife_usec * DECAYED_SUM_SPAN);
    bool is_behind = c->clock.latest > 0 && t > c->clock.latest;

    if (!is_behind && c->generation <= decayed_sum_generation(now, c->halflife_usec) + 1)
        return 0;
    if (chains_busy(c))
        return -EBUSY;
    if (is_behind)
        chains_each_sum(c, enlarge, decayed_sum_weight(c->clock.latest, c->halflife_usec));
    else
        t = now;
    chains_each_sum(c, rescale, decayed_sum_weight(t, c->halflife_usec));
    c->clock = (DecayClock){t, 0};
    c->generation = decayed_sum_generation(t, c->halflife_usec);
    c->weight = decayed_sum_weight(t, c->halflife_usec);
    return 0;
}

int chains_prune(const Chains *c, Chains **ret)
{
    _cleanup_chains_ Chains *pruned = NULL;
    int r;

    if (chains_busy(c))
        return -EBUSY;
    r = chains_new(c->halflife_usec, c->window_usec, &pruned);
    for (size_t i = 0; r >= 0 && i < c->n_histories; i++)
        r = copy_history(pruned, c, c->histories[i]);
    if (r < 0)
        return r;
    pruned->generation = c->generation;
    pruned->revision = c->revision;
    pruned->clock = c->clock;
    pruned->weight = c->weight;
    pruned->seen = c->seen;
    pruned->now = c->now;
    *ret = TAKE_PTR(pruned);
    return 0;
}
