/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One application at a time: what a start or an exit adds to whose sums. Long, because every event
 * goes through worlds, applications, partners and pairs, and these know one another; merging,
 * pruning, copying and JSON are apart. */

#include "predict/chains.h"

#include "predict/chains-internal.h"

#include <string.h>

ChainsWorld *chains_world_free(ChainsWorld *w)
{
    if (!w)
        return NULL;
    for (size_t i = 0; i < w->n_applications; i++)
        free(w->applications[i].partners);
    free(w->applications);
    free(w->index);
    free(w->pairs);
    free(w->running);
    free(w);
    return NULL;
}

int chains_new(usec_t halflife, usec_t window, Chains **ret)
{
    _cleanup_chains_ Chains *c = NULL;
    ChainsWorld *w;
    int r;

    if (halflife == 0 || halflife > USEC_INFINITY / DECAYED_SUM_SPAN || window == 0)
        return -EINVAL;
    c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->halflife = halflife;
    c->window = window;
    c->weight = decayed_sum_weight(0, halflife);
    r = chains_world(c, UID_INVALID, &w);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(c);
    return 0;
}

Chains *chains_free(Chains *c)
{
    if (!c)
        return NULL;
    for (size_t i = 0; i < c->n_worlds; i++)
        chains_world_free(c->worlds[i]);
    free(c->worlds);
    chains_names_done(c);
    free(c);
    return NULL;
}

/* Finds or adds an application; CHAINS_NONE as id is the first of a new world. */
int chains_intern(ChainsWorld *w, uint32_t id, uint32_t *ret)
{
    size_t old = w->allocated_index;
    int r;

    if (id != CHAINS_NONE) {
        if (id >= CHAINS_IDS_MAX)
            return -E2BIG;
        r = grow_array(&w->index, &w->allocated_index, (size_t)id + 1, sizeof(*w->index));
        if (r < 0)
            return r;
        if (w->allocated_index > old)
            memset(w->index + old, 0xff, (w->allocated_index - old) * sizeof(*w->index));
        if (w->index[id] != CHAINS_NONE) {
            *ret = w->index[id];
            return 0;
        }
    }
    r = grow_array(&w->applications, &w->allocated_applications, w->n_applications + 1,
                   sizeof(*w->applications));
    if (r < 0)
        return r;
    w->applications[w->n_applications] = (ChainsApplication){.id = id};
    if (id != CHAINS_NONE)
        w->index[id] = (uint32_t)w->n_applications;
    *ret = (uint32_t)w->n_applications++;
    return 0;
}

int chains_world(Chains *c, uint32_t user, ChainsWorld **ret)
{
    ChainsWorld *w;
    uint32_t begin;
    int r;

    for (size_t i = 0; i < c->n_worlds; i++)
        if (c->worlds[i]->user == user) {
            *ret = c->worlds[i];
            return 0;
        }
    r = grow_array(&c->worlds, &c->allocated_worlds, c->n_worlds + 1, sizeof(*c->worlds));
    if (r < 0)
        return r;
    w = calloc(1, sizeof(*w));
    if (!w)
        return -ENOMEM;
    w->user = user;
    r = chains_intern(w, CHAINS_NONE, &begin);
    if (r < 0) {
        chains_world_free(w);
        return r;
    }
    *ret = c->worlds[c->n_worlds++] = w;
    return 0;
}

static uint32_t partner_position(const ChainsApplication *a, uint32_t other)
{
    uint32_t low = 0, high = a->n_partners;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (a->partners[middle].other < other)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* a's entry for b, or NULL. */
ChainsPartner *chains_find_partner(const ChainsWorld *w, uint32_t a, uint32_t b)
{
    const ChainsApplication *x;
    uint32_t at;

    if (w->applications[b].n_partners < w->applications[a].n_partners) {
        at = a;
        a = b;
        b = at;
    }
    x = &w->applications[a];
    at = partner_position(x, b);
    return at < x->n_partners && x->partners[at].other == b ? &x->partners[at] : NULL;
}

ChainsPair *chains_find_pair(const ChainsWorld *w, uint32_t a, uint32_t b)
{
    const ChainsPartner *partner = chains_find_partner(w, a, b);

    return partner && partner->pair != CHAINS_NONE ? &w->pairs[partner->pair] : NULL;
}

const ChainsPair *chains_pair(const ChainsWorld *w, uint32_t a, uint32_t b)
{
    return a == b || a >= w->n_applications || b >= w->n_applications ? NULL
                                                                      : chains_find_pair(w, a, b);
}

uint32_t chains_together(const ChainsWorld *w, uint32_t a, uint32_t b)
{
    const ChainsPartner *partner = a == b || a >= w->n_applications || b >= w->n_applications
                                           ? NULL
                                           : chains_find_partner(w, a, b);

    return !partner ? 0 : partner->pair == CHAINS_NONE ? 1 : w->pairs[partner->pair].together;
}

uint32_t chains_find(const ChainsWorld *w, uint32_t id)
{
    return id < w->allocated_index ? w->index[id] : CHAINS_NONE;
}

static int reserve_partner(ChainsApplication *a)
{
    size_t allocated = a->allocated_partners;
    void *partners = a->partners;
    int r = grow_array(&partners, &allocated, (size_t)a->n_partners + 1, sizeof(*a->partners));

    if (r < 0)
        return r;
    a->partners = partners;
    a->allocated_partners = (uint32_t)allocated;
    return 0;
}

static void insert_partner(ChainsApplication *a, uint32_t other)
{
    uint32_t at = partner_position(a, other);

    memmove(a->partners + at + 1, a->partners + at, (a->n_partners - at) * sizeof(*a->partners));
    a->partners[at] = (ChainsPartner){other, CHAINS_NONE};
    a->n_partners++;
}

/* Two applications have met that never had. 0, -E2BIG, -ENOMEM. */
int chains_add_partners(ChainsWorld *w, uint32_t a, uint32_t b)
{
    int r;

    if (w->n_met >= CHAINS_PAIRS_MAX)
        return -E2BIG;
    r = reserve_partner(&w->applications[a]);
    if (r >= 0)
        r = reserve_partner(&w->applications[b]);
    if (r < 0)
        return r;
    insert_partner(&w->applications[a], b);
    insert_partner(&w->applications[b], a);
    w->n_met++;
    return 0;
}

/* By a quarter at a time: chains are most of the memory. */
static int reserve_pair(ChainsWorld *w)
{
    size_t n = w->allocated_pairs + MAX(w->allocated_pairs / 4, (size_t)16);
    ChainsPair *pairs;

    if (w->n_pairs < w->allocated_pairs)
        return 0;
    pairs = reallocarray(w->pairs, n, sizeof(*pairs));
    if (!pairs)
        return -ENOMEM;
    w->pairs = pairs;
    w->allocated_pairs = n;
    return 0;
}

/* An empty chain of two applications that have none; makes them partners if they are not. */
int chains_add_pair(ChainsWorld *w, uint32_t x, uint32_t y, ChainsPair **ret)
{
    uint32_t a = MIN(x, y), b = MAX(x, y);
    ChainsApplication *p = &w->applications[a], *q = &w->applications[b];
    int r;

    if (!chains_find_partner(w, a, b)) {
        r = chains_add_partners(w, a, b);
        if (r < 0)
            return r;
    }
    r = reserve_pair(w);
    if (r < 0)
        return r;
    p->partners[partner_position(p, b)].pair = (uint32_t)w->n_pairs;
    q->partners[partner_position(q, a)].pair = (uint32_t)w->n_pairs;
    w->pairs[w->n_pairs] = (ChainsPair){.a = a, .b = b};
    *ret = &w->pairs[w->n_pairs++];
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
    uint64_t generation = decayed_sum_generation(t, c->halflife);

    if (now > c->seen) {
        c->now += MIN(now - c->seen, CHAINS_GAP_MAX);
        c->seen = now;
    }
    if (generation > c->generation)
        chains_advance(c, generation - c->generation);
    /* What seems older than the generation happens now all the same: the clock was set back. */
    c->weight = generation < c->generation ? decayed_sum_weight(0, c->halflife)
                                           : decayed_sum_weight(t, c->halflife);
}

double chains_value(const Chains *c, DecayedSum f)
{
    return decayed_sum_value(f) / (double)c->weight;
}

/* Events */

/* The one that started last has been that until now: also for every one that runs. */
static void flush_last(const Chains *c, ChainsWorld *w)
{
    ChainsApplication *l = &w->applications[w->last];

    add(c, &l->last, elapsed(c, w->last_since, 0));
    if (l->running)
        add(c, &l->last_self, elapsed(c, w->last_since, 0));
    for (size_t i = 0; i < w->n_running; i++) {
        uint32_t x = w->running[i];
        ChainsPair *p = x == w->last ? NULL : chains_find_pair(w, w->last, x);

        if (p)
            add(c, &p->last[x == p->b],
                elapsed(c, MAX(w->last_since, w->applications[x].since), p->since));
    }
}

/* An application stops running, by its exit or because the session ends. */
static void flush_running(const Chains *c, ChainsWorld *w, uint32_t b, bool exited)
{
    ChainsApplication *x = &w->applications[b];

    for (size_t i = 0; i < w->n_running; i++) {
        uint32_t a = w->running[i];
        ChainsPair *p = a == b ? NULL : chains_find_pair(w, a, b);

        if (!p)
            continue;
        add(c, &p->both, elapsed(c, MAX(x->since, w->applications[a].since), p->since));
        if (exited)
            add(c, &p->exits[b == p->b], 1);
    }
    add(c, &x->on, elapsed(c, x->since, 0));
    if (exited)
        add(c, &x->exits, 1);
}

static void remember_start(ChainsWorld *w, uint32_t application, usec_t now)
{
    if (w->n_recent == CHAINS_RECENT_MAX) {
        memmove(w->recent, w->recent + 1, (CHAINS_RECENT_MAX - 1) * sizeof(*w->recent));
        w->n_recent--;
    }
    w->recent[w->n_recent++] = (ChainsRecent){application, now};
}

int chains_begin(Chains *c, ChainsWorld *w)
{
    chains_end(c, w);
    w->in_session = true;
    w->begin = w->last_since = c->now;
    w->last = CHAINS_BEGIN;
    w->n_recent = 0;
    remember_start(w, CHAINS_BEGIN, c->now);
    add(c, &w->applications[CHAINS_BEGIN].starts, 1);
    for (size_t i = 0; i < w->n_applications; i++)
        w->applications[i].started = false;
    return 0;
}

usec_t chains_age_end(unsigned age)
{
    return age + 1 >= CHAINS_AGES ? USEC_INFINITY : (300 * USEC_PER_SEC) << age;
}

/* A session ends at this age. */
static void flush_age(const Chains *c, ChainsWorld *w)
{
    usec_t age = c->now - w->begin, start = 0;

    for (unsigned i = 0; i < CHAINS_AGES; i++) {
        usec_t end = chains_age_end(i);

        add(c, &w->age_time[i], (MIN(age, end) - start + USEC_PER_MSEC / 2) / USEC_PER_MSEC);
        if (age < end) {
            add(c, &w->age_ended[i], 1);
            return;
        }
        start = end;
    }
}

void chains_end(Chains *c, ChainsWorld *w)
{
    if (!w->in_session)
        return;
    flush_last(c, w);
    while (w->n_running > 0) {
        uint32_t b = w->running[w->n_running - 1];

        flush_running(c, w, b, false);
        w->applications[b].running = false;
        w->n_running--;
    }
    add(c, &w->time, elapsed(c, w->begin, 0));
    add(c, &w->sessions, 1);
    flush_age(c, w);
    w->in_session = false;
}

static DecayedSum plus(const Chains *c, DecayedSum f, uint64_t amount)
{
    add(c, &f, amount);
    return f;
}

/* Two applications, one of which starts now near the other's start. */
static int meet(const Chains *c, ChainsWorld *w, uint32_t a, uint32_t b)
{
    const ChainsPartner *partner = chains_find_partner(w, a, b);
    ChainsPair *p;
    int r;

    if (!partner) {
        r = chains_add_partners(w, a, b);
        return r == -E2BIG ? 0 : r;
    }
    if (partner->pair != CHAINS_NONE) {
        p = &w->pairs[partner->pair];
        p->together += p->together < UINT32_MAX;
        return 0;
    }
    r = chains_add_pair(w, a, b, &p);
    if (r < 0)
        return r;
    p->together = 2;
    p->before_time = plus(c, w->time, elapsed(c, w->begin, 0));
    for (unsigned i = 0; i < 2; i++) {
        const ChainsApplication *x = &w->applications[i == 0 ? p->a : p->b];

        p->before_on[i] = x->running ? plus(c, x->on, elapsed(c, x->since, 0)) : x->on;
        p->before_starts[i] = x->starts;
        p->before_exits[i] = x->exits;
    }
    p->since = c->now;
    return 0;
}

int chains_start(Chains *c, ChainsWorld *w, uint32_t id)
{
    ChainsApplication *x;
    ChainsPair *p;
    uint32_t b;
    size_t n = 0;
    int r;

    if (!w->in_session) {
        r = chains_begin(c, w);
        if (r < 0)
            return r;
    }
    r = chains_intern(w, id, &b);
    if (r < 0)
        return r;
    x = &w->applications[b];
    if (x->running)
        return 0;
    r = grow_array(&w->running, &w->allocated_running, w->n_running + 1, sizeof(*w->running));
    if (r < 0)
        return r;

    for (size_t i = 0; i < w->n_recent; i++)
        if (c->now - w->recent[i].at <= c->window && w->recent[i].application != b)
            w->recent[n++] = w->recent[i];
    w->n_recent = n;
    for (size_t i = 0; i < w->n_recent; i++) {
        r = meet(c, w, w->recent[i].application, b);
        if (r < 0)
            return r;
    }

    flush_last(c, w);
    if (w->last == b)
        add(c, &x->next_self, 1);
    else {
        p = chains_find_pair(w, w->last, b);
        if (p)
            add(c, &p->next[b == p->b], 1);
    }
    for (size_t i = 0; i < w->n_running; i++) {
        p = chains_find_pair(w, w->running[i], b);
        if (p)
            add(c, &p->starts[b == p->b], 1);
    }
    add(c, &x->starts, 1);
    if (!x->started)
        add(c, &x->sessions, 1);
    x->started = x->running = true;
    x->since = c->now;
    w->running[w->n_running++] = b;
    w->last = b;
    w->last_since = c->now;
    remember_start(w, b, c->now);
    return 0;
}

void chains_exit(Chains *c, ChainsWorld *w, uint32_t id)
{
    uint32_t b = chains_find(w, id);
    ChainsApplication *x = b == CHAINS_NONE ? NULL : &w->applications[b];

    if (!x || !x->running)
        return;
    if (w->last == b)
        add(c, &x->last_self, elapsed(c, w->last_since, 0));
    else {
        ChainsPair *p = chains_find_pair(w, w->last, b);

        if (p)
            add(c, &p->last[b == p->b], elapsed(c, MAX(w->last_since, x->since), p->since));
    }
    flush_running(c, w, b, true);
    x->running = false;
    for (size_t i = 0; i < w->n_running; i++)
        if (w->running[i] == b) {
            w->running[i] = w->running[--w->n_running];
            break;
        }
}

/* Reading */

double chains_time_usec(const Chains *c, const ChainsWorld *w)
{
    DecayedSum f = w->in_session ? plus(c, w->time, elapsed(c, w->begin, 0)) : w->time;

    return chains_value(c, f) * (double)USEC_PER_MSEC;
}

void chains_totals(const Chains *c, const ChainsWorld *w, uint32_t application, ChainsTotals *ret)
{
    const ChainsApplication *x = &w->applications[application];
    DecayedSum on = x->running ? plus(c, x->on, elapsed(c, x->since, 0)) : x->on;

    ret->starts = chains_value(c, x->starts);
    ret->on_usec = chains_value(c, on) * (double)USEC_PER_MSEC;
    ret->off_usec = fmax(chains_time_usec(c, w) - ret->on_usec, 0);
}

static double since_then(const Chains *c, DecayedSum total, DecayedSum before)
{
    return fmax(chains_value(c, total) - chains_value(c, before), 0);
}

void chains_states(const Chains *c, const ChainsWorld *w, const ChainsPair *p, ChainsStates *ret)
{
    const ChainsApplication *x[2] = {&w->applications[p->a], &w->applications[p->b]};
    double ms = (double)USEC_PER_MSEC, time, on[2], both;
    DecayedSum f = w->in_session ? plus(c, w->time, elapsed(c, w->begin, 0)) : w->time;

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

    for (size_t i = 0; i < c->n_worlds; i++) {
        const ChainsWorld *w = c->worlds[i];

        n += sizeof(*w) + w->allocated_applications * sizeof(*w->applications) +
             w->allocated_pairs * sizeof(*w->pairs) + w->allocated_index * sizeof(*w->index);
        for (size_t j = 0; j < w->n_applications; j++)
            n += w->applications[j].allocated_partners * sizeof(ChainsPartner);
    }
    return n;
}
