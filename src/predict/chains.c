/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One application at a time: what a start or an exit adds to whose sums. Long, because every event
 * goes through histories, applications, neighbours and pairs, and these know one another; merging,
 * pruning, copying and JSON are apart. */

#include "predict/chains.h"

#include "predict/chains-internal.h"

#include <string.h>

UserHistory *user_history_free(UserHistory *h)
{
    if (!h)
        return NULL;
    for (size_t i = 0; i < h->n_applications; i++)
        free(h->applications[i].neighbours);
    free(h->applications);
    free(h->index);
    free(h->pairs);
    free(h->running);
    free(h);
    return NULL;
}

int chains_new(usec_t halflife_usec, usec_t window_usec, Chains **ret)
{
    _cleanup_chains_ Chains *c = NULL;
    UserHistory *h;
    int r;

    if (halflife_usec == 0 || halflife_usec > USEC_INFINITY / DECAYED_SUM_SPAN || window_usec == 0)
        return -EINVAL;
    c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->halflife_usec = halflife_usec;
    c->window_usec = window_usec;
    c->weight = decayed_sum_weight(0, halflife_usec);
    r = chains_history(c, UID_INVALID, &h);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(c);
    return 0;
}

Chains *chains_free(Chains *c)
{
    if (!c)
        return NULL;
    for (size_t i = 0; i < c->n_histories; i++)
        user_history_free(c->histories[i]);
    free(c->histories);
    chains_names_done(c);
    free(c);
    return NULL;
}

/* Finds or adds an application; CHAINS_NONE as id is the first of a new history. */
int chains_intern(UserHistory *h, uint32_t id, uint32_t *ret)
{
    size_t old = h->allocated_index;
    int r;

    if (id != CHAINS_NONE) {
        if (id >= CHAINS_IDS_MAX)
            return -E2BIG;
        r = grow_array(&h->index, &h->allocated_index, (size_t)id + 1, sizeof(*h->index));
        if (r < 0)
            return r;
        if (h->allocated_index > old)
            memset(h->index + old, 0xff, (h->allocated_index - old) * sizeof(*h->index));
        if (h->index[id] != CHAINS_NONE) {
            *ret = h->index[id];
            return 0;
        }
    }
    r = grow_array(&h->applications, &h->allocated_applications, h->n_applications + 1,
                   sizeof(*h->applications));
    if (r < 0)
        return r;
    h->applications[h->n_applications] = (ChainsApplication){.id = id};
    if (id != CHAINS_NONE)
        h->index[id] = (uint32_t)h->n_applications;
    *ret = (uint32_t)h->n_applications++;
    return 0;
}

int chains_history(Chains *c, uint32_t user, UserHistory **ret)
{
    UserHistory *h;
    uint32_t begin;
    int r;

    for (size_t i = 0; i < c->n_histories; i++)
        if (c->histories[i]->user == user) {
            *ret = c->histories[i];
            return 0;
        }
    r = grow_array(&c->histories, &c->allocated_histories, c->n_histories + 1,
                   sizeof(*c->histories));
    if (r < 0)
        return r;
    h = calloc(1, sizeof(*h));
    if (!h)
        return -ENOMEM;
    h->user = user;
    r = chains_intern(h, CHAINS_NONE, &begin);
    if (r < 0) {
        user_history_free(h);
        return r;
    }
    *ret = c->histories[c->n_histories++] = h;
    return 0;
}

static uint32_t neighbour_position(const ChainsApplication *a, uint32_t other)
{
    uint32_t low = 0, high = a->n_neighbours;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (a->neighbours[middle].other < other)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* a's entry for b, or NULL. */
Neighbour *chains_find_neighbour(const UserHistory *h, uint32_t a, uint32_t b)
{
    const ChainsApplication *x;
    uint32_t at;

    if (h->applications[b].n_neighbours < h->applications[a].n_neighbours) {
        at = a;
        a = b;
        b = at;
    }
    x = &h->applications[a];
    at = neighbour_position(x, b);
    return at < x->n_neighbours && x->neighbours[at].other == b ? &x->neighbours[at] : NULL;
}

ChainsPair *chains_find_pair(const UserHistory *h, uint32_t a, uint32_t b)
{
    const Neighbour *neighbour = chains_find_neighbour(h, a, b);

    return neighbour && neighbour->pair != CHAINS_NONE ? &h->pairs[neighbour->pair] : NULL;
}

const ChainsPair *chains_pair(const UserHistory *h, uint32_t a, uint32_t b)
{
    return a == b || a >= h->n_applications || b >= h->n_applications ? NULL
                                                                      : chains_find_pair(h, a, b);
}

uint32_t chains_co_occurrences(const UserHistory *h, uint32_t a, uint32_t b)
{
    const Neighbour *neighbour = a == b || a >= h->n_applications || b >= h->n_applications
                                         ? NULL
                                         : chains_find_neighbour(h, a, b);

    return !neighbour                       ? 0
           : neighbour->pair == CHAINS_NONE ? 1
                                            : h->pairs[neighbour->pair].co_occurrences;
}

uint32_t chains_find(const UserHistory *h, uint32_t id)
{
    return id < h->allocated_index ? h->index[id] : CHAINS_NONE;
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

/* Two applications have met that never had. 0, -E2BIG, -ENOMEM. */
int chains_add_neighbours(UserHistory *h, uint32_t a, uint32_t b)
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

/* By a quarter at a time: chains are most of the memory. */
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

/* An empty chain of two applications that have none; makes them neighbours if they are not. */
int chains_add_pair(UserHistory *h, uint32_t x, uint32_t y, ChainsPair **ret)
{
    uint32_t a = MIN(x, y), b = MAX(x, y);
    ChainsApplication *p = &h->applications[a], *q = &h->applications[b];
    int r;

    if (!chains_find_neighbour(h, a, b)) {
        r = chains_add_neighbours(h, a, b);
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

/* Time */

static void add(const Chains *c, DecayedSum *f, uint64_t amount)
{
    uint64_t x;

    if (__builtin_mul_overflow(amount, c->weight, &x))
        x = DECAYED_SUM_MAX;
    f->current = decayed_sum_saturating_add(f->current, MIN(x, DECAYED_SUM_MAX));
}

/* From whichever came last until now, in milliseconds. */
static uint64_t elapsed(const Chains *c, usec_t since, usec_t or_since)
{
    usec_t t = MAX(since, or_since);

    return c->now > t ? (c->now - t + USEC_PER_MSEC / 2) / USEC_PER_MSEC : 0;
}

void chains_advance(Chains *c, uint64_t later)
{
    chains_each_sum(c, decayed_sum_advance, later);
    c->generation += later;
}

void chains_set_time(Chains *c, usec_t now, usec_t realtime)
{
    usec_t t = MIN(realtime, USEC_INFINITY - 1);
    uint64_t generation = decayed_sum_generation(t, c->halflife_usec);

    if (now > c->seen) {
        c->now += MIN(now - c->seen, CHAINS_GAP_MAX);
        c->seen = now;
    }
    if (generation > c->generation)
        chains_advance(c, generation - c->generation);
    /* What seems older than the generation happens now all the same: the clock was set back. */
    c->weight = generation < c->generation ? decayed_sum_weight(0, c->halflife_usec)
                                           : decayed_sum_weight(t, c->halflife_usec);
}

double chains_value(const Chains *c, DecayedSum f)
{
    return decayed_sum_value(f) / (double)c->weight;
}

/* Events */

/* The one that started last has been that until now: also for every one that runs. */
static void flush_last(const Chains *c, UserHistory *h)
{
    ChainsApplication *l = &h->applications[h->last];

    add(c, &l->last, elapsed(c, h->last_since, 0));
    if (l->running)
        add(c, &l->last_self, elapsed(c, h->last_since, 0));
    for (size_t i = 0; i < h->n_running; i++) {
        uint32_t x = h->running[i];
        ChainsPair *p = x == h->last ? NULL : chains_find_pair(h, h->last, x);

        if (p)
            add(c, &p->last[x == p->b],
                elapsed(c, MAX(h->last_since, h->applications[x].since), p->since));
    }
}

/* An application stops running, by its exit or because the session ends. */
static void flush_running(const Chains *c, UserHistory *h, uint32_t b, bool exited)
{
    ChainsApplication *x = &h->applications[b];

    for (size_t i = 0; i < h->n_running; i++) {
        uint32_t a = h->running[i];
        ChainsPair *p = a == b ? NULL : chains_find_pair(h, a, b);

        if (!p)
            continue;
        add(c, &p->both, elapsed(c, MAX(x->since, h->applications[a].since), p->since));
        if (exited)
            add(c, &p->exits[b == p->b], 1);
    }
    add(c, &x->on, elapsed(c, x->since, 0));
    if (exited)
        add(c, &x->exits, 1);
}

static void remember_start(UserHistory *h, uint32_t application, usec_t now)
{
    if (h->n_recent == CHAINS_RECENT_MAX) {
        memmove(h->recent, h->recent + 1, (CHAINS_RECENT_MAX - 1) * sizeof(*h->recent));
        h->n_recent--;
    }
    h->recent[h->n_recent++] = (ChainsRecent){application, now};
}

int chains_begin(Chains *c, UserHistory *h)
{
    chains_end(c, h);
    h->in_session = true;
    h->begin = h->last_since = c->now;
    h->last = CHAINS_BEGIN;
    h->n_recent = 0;
    remember_start(h, CHAINS_BEGIN, c->now);
    add(c, &h->applications[CHAINS_BEGIN].starts, 1);
    for (size_t i = 0; i < h->n_applications; i++)
        h->applications[i].started = false;
    return 0;
}

usec_t chains_age_end(unsigned age)
{
    return age + 1 >= CHAINS_AGES ? USEC_INFINITY : (300 * USEC_PER_SEC) << age;
}

/* A session ends at this age. */
static void flush_age(const Chains *c, UserHistory *h)
{
    usec_t age = c->now - h->begin, start = 0;

    for (unsigned i = 0; i < CHAINS_AGES; i++) {
        usec_t end = chains_age_end(i);

        add(c, &h->age_time[i], (MIN(age, end) - start + USEC_PER_MSEC / 2) / USEC_PER_MSEC);
        if (age < end) {
            add(c, &h->age_ended[i], 1);
            return;
        }
        start = end;
    }
}

void chains_end(Chains *c, UserHistory *h)
{
    if (!h->in_session)
        return;
    flush_last(c, h);
    while (h->n_running > 0) {
        uint32_t b = h->running[h->n_running - 1];

        flush_running(c, h, b, false);
        h->applications[b].running = false;
        h->n_running--;
    }
    add(c, &h->time, elapsed(c, h->begin, 0));
    add(c, &h->sessions, 1);
    flush_age(c, h);
    h->in_session = false;
}

static DecayedSum plus(const Chains *c, DecayedSum f, uint64_t amount)
{
    add(c, &f, amount);
    return f;
}

/* Two applications, one of which starts now near the other's start. */
static int note_co_occurrence(const Chains *c, UserHistory *h, uint32_t a, uint32_t b)
{
    const Neighbour *neighbour = chains_find_neighbour(h, a, b);
    ChainsPair *p;
    int r;

    if (!neighbour)
        return h->n_co_occurring < CHAINS_LIVE_PAIRS_MAX ? chains_add_neighbours(h, a, b) : 0;
    if (neighbour->pair != CHAINS_NONE) {
        p = &h->pairs[neighbour->pair];
        p->co_occurrences += p->co_occurrences < UINT32_MAX;
        return 0;
    }
    r = chains_add_pair(h, a, b, &p);
    if (r < 0)
        return r;
    p->co_occurrences = 2;
    p->before_time = plus(c, h->time, elapsed(c, h->begin, 0));
    for (unsigned i = 0; i < 2; i++) {
        const ChainsApplication *x = &h->applications[i == 0 ? p->a : p->b];

        p->before_on[i] = x->running ? plus(c, x->on, elapsed(c, x->since, 0)) : x->on;
        p->before_starts[i] = x->starts;
        p->before_exits[i] = x->exits;
    }
    p->since = c->now;
    return 0;
}

int chains_start(Chains *c, UserHistory *h, uint32_t id)
{
    ChainsApplication *x;
    ChainsPair *p;
    uint32_t b;
    size_t n = 0;
    int r;

    if (!h->in_session) {
        r = chains_begin(c, h);
        if (r < 0)
            return r;
    }
    r = chains_intern(h, id, &b);
    if (r < 0)
        return r;
    x = &h->applications[b];
    if (x->running)
        return 0;
    r = grow_array(&h->running, &h->allocated_running, h->n_running + 1, sizeof(*h->running));
    if (r < 0)
        return r;

    for (size_t i = 0; i < h->n_recent; i++)
        if (c->now - h->recent[i].at <= c->window_usec && h->recent[i].application != b)
            h->recent[n++] = h->recent[i];
    h->n_recent = n;
    for (size_t i = 0; i < h->n_recent; i++) {
        r = note_co_occurrence(c, h, h->recent[i].application, b);
        if (r < 0)
            return r;
    }

    flush_last(c, h);
    if (h->last == b)
        add(c, &x->next_self, 1);
    else {
        p = chains_find_pair(h, h->last, b);
        if (p)
            add(c, &p->next[b == p->b], 1);
    }
    for (size_t i = 0; i < h->n_running; i++) {
        p = chains_find_pair(h, h->running[i], b);
        if (p)
            add(c, &p->starts[b == p->b], 1);
    }
    add(c, &x->starts, 1);
    if (!x->started)
        add(c, &x->sessions, 1);
    x->started = x->running = true;
    x->since = c->now;
    h->running[h->n_running++] = b;
    h->last = b;
    h->last_since = c->now;
    remember_start(h, b, c->now);
    return 0;
}

void chains_exit(Chains *c, UserHistory *h, uint32_t id)
{
    uint32_t b = chains_find(h, id);
    ChainsApplication *x = b == CHAINS_NONE ? NULL : &h->applications[b];

    if (!x || !x->running)
        return;
    if (h->last == b)
        add(c, &x->last_self, elapsed(c, h->last_since, 0));
    else {
        ChainsPair *p = chains_find_pair(h, h->last, b);

        if (p)
            add(c, &p->last[b == p->b], elapsed(c, MAX(h->last_since, x->since), p->since));
    }
    flush_running(c, h, b, true);
    x->running = false;
    for (size_t i = 0; i < h->n_running; i++)
        if (h->running[i] == b) {
            h->running[i] = h->running[--h->n_running];
            break;
        }
}

/* Reading */

double chains_time_usec(const Chains *c, const UserHistory *h)
{
    DecayedSum f = h->in_session ? plus(c, h->time, elapsed(c, h->begin, 0)) : h->time;

    return chains_value(c, f) * (double)USEC_PER_MSEC;
}

void chains_totals(const Chains *c, const UserHistory *h, uint32_t application, ChainsTotals *ret)
{
    const ChainsApplication *x = &h->applications[application];
    DecayedSum on = x->running ? plus(c, x->on, elapsed(c, x->since, 0)) : x->on;

    ret->starts = chains_value(c, x->starts);
    ret->on_usec = chains_value(c, on) * (double)USEC_PER_MSEC;
    ret->off_usec = fmax(chains_time_usec(c, h) - ret->on_usec, 0);
}

static double since_then(const Chains *c, DecayedSum total, DecayedSum before)
{
    return fmax(chains_value(c, total) - chains_value(c, before), 0);
}

void chains_states(const Chains *c, const UserHistory *h, const ChainsPair *p, ChainsStates *ret)
{
    const ChainsApplication *x[2] = {&h->applications[p->a], &h->applications[p->b]};
    double ms = (double)USEC_PER_MSEC, time, on[2], both;
    DecayedSum f = h->in_session ? plus(c, h->time, elapsed(c, h->begin, 0)) : h->time;

    *ret = (ChainsStates){0};
    time = since_then(c, f, p->before_time) * ms;
    f = p->both;
    if (x[0]->running && x[1]->running)
        f = plus(c, f, elapsed(c, MAX(x[0]->since, x[1]->since), p->since));
    both = chains_value(c, f) * ms;
    for (unsigned i = 0; i < 2; i++) {
        unsigned other = i == 0 ? 2 : 1, me = i == 0 ? 1 : 2;
        double starts = chains_value(c, p->starts[i]), exits = chains_value(c, p->exits[i]);

        f = x[i]->running ? plus(c, x[i]->on, elapsed(c, x[i]->since, 0)) : x[i]->on;
        on[i] = since_then(c, f, p->before_on[i]) * ms;
        ret->n[other][3] = starts;
        ret->n[3][other] = exits;
        ret->n[0][me] = fmax(since_then(c, x[i]->starts, p->before_starts[i]) - starts, 0);
        ret->n[me][0] = fmax(since_then(c, x[i]->exits, p->before_exits[i]) - exits, 0);
        ret->dwell_usec[me] = fmax(on[i] - both, 0);
    }
    ret->dwell_usec[3] = both;
    ret->dwell_usec[0] = fmax(time - on[0] - on[1] + both, 0);
}

size_t chains_size(const Chains *c)
{
    size_t n = sizeof(*c) + c->n_names * sizeof(*c->names);

    for (size_t i = 0; i < c->n_histories; i++) {
        const UserHistory *h = c->histories[i];

        n += sizeof(*h) + h->allocated_applications * sizeof(*h->applications) +
             h->allocated_pairs * sizeof(*h->pairs) + h->allocated_index * sizeof(*h->index);
        for (size_t j = 0; j < h->n_applications; j++)
            n += h->applications[j].allocated_neighbours * sizeof(Neighbour);
    }
    return n;
}
