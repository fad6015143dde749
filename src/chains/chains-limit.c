/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Bounds the memory of chains, so that one user cannot exhaust the memory of the programs that read
 * them (chains.h). */

#include "chains/chains-internal.h"
#include "chains/fair-share.h"

#include <string.h>

/* An application of a history, or two neighbours. */
typedef struct Ranked {
    uint32_t a, b; /* b: CHAINS_NONE for one application */
    uint32_t rank; /* lower is better; in the history of everybody the best rank among all users;
                      in that of a user 1 for a pair without a chain */
    double value;
} Ranked;

static int compare_ranked(const void *a, const void *b)
{
    const Ranked *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    return x->b < y->b ? -1 : x->b > y->b;
}

/* Lists every application but CHAINS_BEGIN, the most used first. If `best` is not NULL, the order
 * is that of best[id], and the use decides only between equal ranks. */
static int rank_applications(const Chains *c, const UserHistory *h, const uint32_t *best,
                             Ranked **ret)
{
    _cleanup_free_ Ranked *ranked = calloc(h->n_applications, sizeof(*ranked));

    if (!ranked)
        return -ENOMEM;
    for (uint32_t i = 1; i < h->n_applications; i++) {
        const ChainsApplication *x = &h->applications[i];

        ranked[i - 1] = (Ranked){
                .a = i,
                .b = CHAINS_NONE,
                .rank = best ? best[x->id] : 0,
                .value = chains_value(c, x->sessions) + chains_value(c, x->starts) / 1024,
        };
    }
    if (h->n_applications > 2)
        qsort(ranked, h->n_applications - 1, sizeof(*ranked), compare_ranked);
    *ret = TAKE_PTR(ranked);
    return 0;
}

/* Empties a pair, so that chains_prune() drops it. */
static void clear_pair(ChainsPair *p)
{
    DecayedSum *sums[CHAINS_PAIR_SUMS];

    chains_pair_sums(p, false, sums);
    for (size_t i = 0; i < CHAINS_PAIR_SUMS; i++)
        *sums[i] = (DecayedSum){0};
}

static void clear_application(UserHistory *h, uint32_t application)
{
    ChainsApplication *x = &h->applications[application];
    DecayedSum *sums[CHAINS_APPLICATION_SUMS];

    chains_application_sums(x, sums);
    for (size_t i = 0; i < CHAINS_APPLICATION_SUMS; i++)
        *sums[i] = (DecayedSum){0};
    for (uint32_t i = 0; i < x->n_neighbours; i++)
        if (x->neighbours[i].pair != CHAINS_NONE)
            clear_pair(&h->pairs[x->neighbours[i].pair]);
}

static double pair_value(const Chains *c, const ChainsPair *p)
{
    double value = 0;

    for (unsigned i = 0; i < 2; i++)
        value += chains_value(c, p->starts[i]) + chains_value(c, p->exits[i]) +
                 chains_value(c, p->next[i]);
    return value;
}

/* Returns the sessions that could have contained both applications: those of the rarer one. */
static double common_sessions(const Chains *c, const UserHistory *h, uint32_t a, uint32_t b)
{
    double of_a = chains_value(c, a == CHAINS_BEGIN ? h->sessions : h->applications[a].sessions);

    return min_double(of_a, chains_value(c, h->applications[b].sessions));
}

/* Returns true if limit_applications() has emptied the application, so that its pairs go, too. */
static bool is_cleared(const UserHistory *h, uint32_t application)
{
    const ChainsApplication *x = &h->applications[application];

    return application != CHAINS_BEGIN && decayed_sum_is_zero(x->sessions) &&
           decayed_sum_is_zero(x->starts);
}

/* Ranks of the pairs of a history. The pair of application a with its neighbour number i has the
 * rank ranks[first[a] + i] if a is the smaller of the two. */
typedef struct PairRanks {
    size_t *first;
    uint32_t *ranks;
} PairRanks;

static void pair_ranks_done(PairRanks *r)
{
    free(r->first);
    free(r->ranks);
}

/* Lists all pairs of neighbours: first those with a chain, by falling number of events, then those
 * without, by falling number of sessions. If `best` has ranks, these decide first. Pairs of cleared
 * applications come last. */
static int rank_pairs(const Chains *c, const UserHistory *h, const PairRanks *best, Ranked **ret,
                      size_t *ret_n)
{
    _cleanup_free_ Ranked *ranked = calloc(h->n_co_occurring + 1, sizeof(*ranked));
    size_t n = 0;

    if (!ranked)
        return -ENOMEM;
    for (uint32_t a = 0; a < h->n_applications; a++)
        for (uint32_t i = 0; i < h->applications[a].n_neighbours; i++) {
            const Neighbour *b = &h->applications[a].neighbours[i];
            bool chain = b->pair != CHAINS_NONE;

            if (b->other <= a || n == h->n_co_occurring)
                continue;
            ranked[n] = (Ranked){.a = a, .b = b->other, .rank = UINT32_MAX, .value = -1};
            if (!is_cleared(h, a) && !is_cleared(h, b->other)) {
                ranked[n].rank = best->ranks ? best->ranks[best->first[a] + i] : !chain;
                ranked[n].value = chain ? pair_value(c, &h->pairs[b->pair])
                                        : common_sessions(c, h, a, b->other);
            }
            n++;
        }
    if (n > 1)
        qsort(ranked, n, sizeof(*ranked), compare_ranked);
    *ret = TAKE_PTR(ranked);
    *ret_n = n;
    return 0;
}

static int pair_ranks_init(const UserHistory *h, PairRanks *r)
{
    size_t n = 0;

    r->first = calloc(h->n_applications, sizeof(*r->first));
    if (!r->first)
        return -ENOMEM;
    for (uint32_t a = 0; a < h->n_applications; a++) {
        r->first[a] = n;
        n += h->applications[a].n_neighbours;
    }
    r->ranks = malloc((n + 1) * sizeof(*r->ranks));
    if (!r->ranks)
        return -ENOMEM;
    memset(r->ranks, 0xff, (n + 1) * sizeof(*r->ranks));
    return 0;
}

/* Sets the rank of each pair of `h` to its best rank in the history of any user. */
static int find_best_pair_ranks(const Chains *c, const UserHistory *h, PairRanks *best)
{
    static const PairRanks none = {0};
    int r = pair_ranks_init(h, best);

    for (size_t i = 1; r >= 0 && i < c->n_histories; i++) {
        _cleanup_free_ Ranked *ranked = NULL;
        const UserHistory *user = c->histories[i];
        size_t n = 0;

        r = rank_pairs(c, user, &none, &ranked, &n);
        for (size_t k = 0; k < n; k++) {
            uint32_t x = user_history_find(h, user->applications[ranked[k].a].id);
            uint32_t y = user_history_find(h, user->applications[ranked[k].b].id);
            uint32_t a = MIN(x, y);
            const Neighbour *b = user_history_find_neighbour(h, a, MAX(x, y));
            uint32_t *rank;

            if (!b)
                continue; /* the applications are not neighbours in `h`, or not in it */
            rank = &best->ranks[best->first[a] + (size_t)(b - h->applications[a].neighbours)];
            *rank = MIN(*rank, (uint32_t)k);
        }
    }
    return r;
}

/* The `pair` of a neighbour that remove_neighbours() removes */
#define PAIR_REMOVED (CHAINS_NONE - 1)

static void remove_neighbours(ChainsApplication *x)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < x->n_neighbours; i++)
        if (x->neighbours[i].pair != PAIR_REMOVED)
            x->neighbours[n++] = x->neighbours[i];
    x->n_neighbours = n;
}

static int limit_pairs(const Chains *c, UserHistory *h, size_t room, bool *changed)
{
    _cleanup_(pair_ranks_done) PairRanks best = {0};
    _cleanup_free_ Ranked *ranked = NULL;
    size_t n;
    int r = 0;

    if (h->n_co_occurring <= room)
        return 0;
    /* As for applications: no user fills the history of everybody alone. */
    if (h->user == UID_INVALID)
        r = find_best_pair_ranks(c, h, &best);
    if (r >= 0)
        r = rank_pairs(c, h, &best, &ranked, &n);
    if (r < 0)
        return r;
    for (size_t i = room; i < n; i++) {
        Neighbour *b = user_history_find_neighbour(h, ranked[i].a, ranked[i].b);

        if (b->pair != CHAINS_NONE) {
            clear_pair(&h->pairs[b->pair]);
            continue;
        }
        b->pair = PAIR_REMOVED;
        user_history_find_neighbour(h, ranked[i].b, ranked[i].a)->pair = PAIR_REMOVED;
        h->n_co_occurring--;
    }
    for (uint32_t a = 0; a < h->n_applications; a++)
        remove_neighbours(&h->applications[a]);
    *changed = true;
    return 0;
}

/* Sets best[id] to the best rank that the application has in the history of any user. */
static int find_best_ranks(const Chains *c, uint32_t **ret)
{
    _cleanup_free_ uint32_t *best = calloc(CHAINS_IDS_MAX, sizeof(*best));

    if (!best)
        return -ENOMEM;
    for (size_t i = 0; i < CHAINS_IDS_MAX; i++)
        best[i] = UINT32_MAX;
    for (size_t i = 1; i < c->n_histories; i++) {
        _cleanup_free_ Ranked *ranked = NULL;
        const UserHistory *h = c->histories[i];
        int r = rank_applications(c, h, NULL, &ranked);

        if (r < 0)
            return r;
        for (uint32_t k = 0; k + 1 < h->n_applications; k++) {
            uint32_t id = h->applications[ranked[k].a].id;

            best[id] = MIN(best[id], k);
        }
    }
    *ret = TAKE_PTR(best);
    return 0;
}

static uint64_t name_bytes(const Chains *c, const UserHistory *h, uint32_t application)
{
    uint32_t id = h->applications[application].id;

    return id < c->names.n ? strlen(c->names.names[id]) : 0;
}

static uint64_t all_name_bytes(const Chains *c, const UserHistory *h)
{
    uint64_t bytes = 0;

    for (uint32_t i = 1; i < h->n_applications; i++)
        bytes += name_bytes(c, h, i);
    return bytes;
}

static int limit_applications(const Chains *c, UserHistory *h, size_t room, uint64_t room_bytes,
                              bool *changed)
{
    _cleanup_free_ uint32_t *best = NULL;
    _cleanup_free_ Ranked *ranked = NULL;
    int r = 0;

    if (h->n_applications <= room + 1 && all_name_bytes(c, h) <= room_bytes)
        return 0;
    /* In the history of everybody, an application has its best rank among the users, so that no
     * user fills this history alone. */
    if (h->user == UID_INVALID)
        r = find_best_ranks(c, &best);
    if (r >= 0)
        r = rank_applications(c, h, best, &ranked);
    if (r < 0)
        return r;
    for (size_t i = 0; i + 1 < h->n_applications; i++) {
        uint64_t bytes = name_bytes(c, h, ranked[i].a);

        if (room == 0 || bytes > room_bytes) {
            clear_application(h, ranked[i].a);
            continue;
        }
        room--;
        room_bytes -= bytes;
    }
    *changed = true;
    return 0;
}

int chains_limit(Chains **c, const ChainsLimits *limits)
{
    _cleanup_free_ uint64_t *sizes = calloc((*c)->n_histories + 1, sizeof(*sizes));
    Chains *pruned;
    bool changed = false;
    uint64_t room, room_bytes;
    int r = 0;

    if (chains_busy(*c))
        return -EBUSY;
    if (!sizes)
        return -ENOMEM;
    for (size_t i = 0; i < (*c)->n_histories; i++)
        sizes[i] = all_name_bytes(*c, (*c)->histories[i]);
    room_bytes = fair_share(sizes, (*c)->n_histories, limits->name_bytes, limits->all_name_bytes);
    for (size_t i = 0; i < (*c)->n_histories; i++)
        sizes[i] = (*c)->histories[i]->n_co_occurring;
    room = fair_share(sizes, (*c)->n_histories, limits->pairs, limits->all_pairs);
    /* The history of everybody is limited first: its ranks come from the histories of the users
     * before these are limited. */
    for (size_t i = 0; r >= 0 && i < (*c)->n_histories; i++) {
        r = limit_applications(*c, (*c)->histories[i], limits->applications, room_bytes, &changed);
        if (r >= 0)
            r = limit_pairs(*c, (*c)->histories[i], room, &changed);
    }
    if (r < 0 || !changed)
        return r;
    r = chains_prune(*c, &pruned);
    if (r < 0)
        return r;
    chains_free(*c);
    *c = pruned;
    return 0;
}
