/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Over 500 lines in one file: every function here depends on the invariants of the same tables. */

#include "chains/chains-internal.h"

#include <string.h>

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
    names_done(&c->names);
    free(c->session.applications);
    free(c->session.running);
    free(c->session.starts);
    free(c);
    return NULL;
}

UserHistory *chains_find_history(const Chains *c, uint32_t user)
{
    for (size_t i = 0; i < c->n_histories; i++)
        if (c->histories[i]->user == user)
            return c->histories[i];
    return NULL;
}

int chains_history(Chains *c, uint32_t user, UserHistory **ret)
{
    int r;

    *ret = chains_find_history(c, user);
    if (*ret)
        return 0;
    r = grow_array(&c->histories, &c->allocated_histories, c->n_histories + 1,
                   sizeof(UserHistory *));
    if (r >= 0)
        r = user_history_new(user, ret);
    if (r >= 0)
        c->histories[c->n_histories++] = *ret;
    return r;
}

int chains_find_name(const Chains *c, const char *name, uint32_t *ret)
{
    return names_find(&c->names, name, ret);
}

int chains_add_name(Chains *c, const char *name, uint32_t *ret)
{
    return names_add(&c->names, name, CHAINS_IDS_MAX, ret);
}

void chains_each_sum(Chains *c, DecayedSum (*f)(DecayedSum, uint64_t), uint64_t argument)
{
    for (size_t i = 0; i < c->n_histories; i++)
        user_history_each_sum(c->histories[i], f, argument);
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

/* --- time ------------------------------------------------------------------------------------- */

/* Counts one event that happens now. */
static void add_event(const Chains *c, DecayedSum *sum)
{
    sum->current = decayed_sum_saturating_add(sum->current, c->weight);
}

/* Returns the sum with the addition of a time that ends now. */
static DecayedSum plus_time(const Chains *c, DecayedSum sum, uint64_t msec)
{
    sum.current = decayed_sum_saturating_add(sum.current, decayed_sum_of_time(msec, c->weight));
    return sum;
}

static void add_time(const Chains *c, DecayedSum *sum, uint64_t msec)
{
    *sum = plus_time(c, *sum, msec);
}

/* Returns the time from the later of two instants until now, in milliseconds. */
static uint64_t elapsed(const Chains *c, usec_t since, usec_t or_since)
{
    usec_t t = MAX(since, or_since);

    return c->now > t ? (c->now - t + USEC_PER_MSEC / 2) / USEC_PER_MSEC : 0;
}

void chains_set_time(Chains *c, EventTime t)
{
    uint64_t generation;

    c->wall = MIN(t.realtime, USEC_INFINITY - 1);
    c->realtime = decay_clock_observe(&c->clock, c->wall, c->halflife_usec);
    generation = decayed_sum_generation(c->clock.latest, c->halflife_usec);
    if (t.at > c->seen) {
        c->now += MIN(t.at - c->seen, CHAINS_GAP_MAX);
        c->seen = t.at;
    }
    if (generation > c->generation) {
        chains_each_sum(c, decayed_sum_advance, generation - c->generation);
        c->generation = generation;
    }
    /* Merging can have advanced the generation beyond the clock. In this case the weight is that of
     * the start of the generation. */
    c->weight =
            decayed_sum_weight(generation < c->generation ? 0 : c->clock.latest, c->halflife_usec);
}

double chains_value(const Chains *c, DecayedSum sum)
{
    return decayed_sum_value(sum) / (double)c->weight;
}

double chains_usec(const Chains *c, DecayedSum sum)
{
    return decayed_sum_usec(sum) / (double)c->weight;
}

/* --- the session ------------------------------------------------------------------------------ */

uint32_t chains_processes(const Chains *c, uint32_t id)
{
    return id < c->session.allocated_applications ? c->session.applications[id].processes : 0;
}

bool chains_learns(const Chains *c, const UserHistory *h)
{
    for (size_t i = 0; c->session.active && i < c->session.n_histories; i++)
        if (c->session.histories[i] == h)
            return true;
    return false;
}

static usec_t since(const Chains *c, uint32_t id)
{
    return c->session.applications[id].since;
}

/* The chains of one application with some of the running applications. */
#define FOUND_MAX 32U
typedef struct FoundPairs {
    ChainsPair *pairs[FOUND_MAX]; /* NULL: there is none */
    uint32_t others[FOUND_MAX];
    size_t n;
} FoundPairs;

/* Finds the chains of application `x` with the running applications from `first` on, at most
 * FOUND_MAX. Requests their memory, so that the processor fetches all of them at once: a model's
 * chains do not fit into its caches. */
static void find_pairs(const Chains *c, UserHistory *h, uint32_t x, size_t first, FoundPairs *ret)
{
    const ChainsSession *s = &c->session;

    ret->n = MIN(s->n_running - first, (size_t)FOUND_MAX);
    for (size_t i = 0; i < ret->n; i++) {
        ChainsPair *p;

        ret->others[i] = user_history_find(h, s->running[first + i]);
        ret->pairs[i] = p = user_history_find_pair(h, x, ret->others[i]);
        if (!p)
            continue;
        for (size_t at = 0; at < sizeof(*p); at += 64)
            __builtin_prefetch((char *)p + at, 1);
    }
}

/* Adds the time since the last start to three sums: `last` of the application that started last,
 * `last_self` of the same application if it still runs, and `last` of its chain with each running
 * application. */
static void flush_last(const Chains *c, UserHistory *h)
{
    const ChainsSession *s = &c->session;
    uint32_t last = user_history_find(h, s->last);
    ChainsApplication *l = &h->applications[last];

    add_time(c, &l->last, elapsed(c, s->last_since, 0));
    if (chains_runs(c, s->last))
        add_time(c, &l->last_self, elapsed(c, s->last_since, 0));
    for (size_t first = 0; first < s->n_running; first += FOUND_MAX) {
        FoundPairs found;

        find_pairs(c, h, last, first, &found);
        for (size_t i = 0; i < found.n; i++) {
            ChainsPair *p = found.pairs[i];

            if (p)
                add_time(c, &p->last[found.others[i] == p->b],
                         elapsed(c, MAX(s->last_since, since(c, s->running[first + i])), p->since));
        }
    }
}

/* Adds the run of an application that stops running, by its exit or because the session ends. */
static void flush_running(const Chains *c, UserHistory *h, uint32_t id, bool exited)
{
    const ChainsSession *s = &c->session;
    uint32_t b = user_history_find(h, id);
    ChainsApplication *x = &h->applications[b];

    for (size_t first = 0; first < s->n_running; first += FOUND_MAX) {
        FoundPairs found;

        find_pairs(c, h, b, first, &found);
        for (size_t i = 0; i < found.n; i++) {
            ChainsPair *p = found.pairs[i];

            if (!p)
                continue;
            add_time(c, &p->both,
                     elapsed(c, MAX(since(c, id), since(c, s->running[first + i])), p->since));
            if (exited)
                add_event(c, &p->exits[b == p->b]);
        }
    }
    add_time(c, &x->on, elapsed(c, since(c, id), 0));
    if (exited)
        add_event(c, &x->exits);
}

usec_t chains_age_end(unsigned age)
{
    return age + 1 >= CHAINS_AGES ? USEC_INFINITY : (5 * USEC_PER_SEC) << age;
}

/* Adds the times that the session has spent at each age, and counts that it ends at its present
 * age. */
static void flush_age(const Chains *c, UserHistory *h)
{
    usec_t age = c->now - c->session.begin, start = 0;

    for (unsigned i = 0; i < CHAINS_AGES; i++) {
        usec_t end = chains_age_end(i);

        add_time(c, &h->age_time[i], (MIN(age, end) - start + USEC_PER_MSEC / 2) / USEC_PER_MSEC);
        if (age < end) {
            add_event(c, &h->age_ended[i]);
            return;
        }
        start = end;
    }
}

int chains_compare_applications(uint32_t a, uint32_t b, const void *userdata)
{
    const ChainsOfHistory *x = userdata;
    uint32_t i = x->history->applications[a].id, j = x->history->applications[b].id;

    if (i < x->chains->names.n && j < x->chains->names.n)
        return strcmp(x->chains->names.names[i], x->chains->names.names[j]);
    return i < j ? -1 : i > j;
}

int chains_add_log(const Chains *c, UserHistory *to, const SessionLog *from, const uint32_t *there)
{
    const ChainsOfHistory names = {c, to};
    LoggedStart starts[SESSION_LOG_STARTS_MAX];

    for (size_t i = 0; i < from->n; i++) {
        LoggedSession x = from->sessions[i];
        uint32_t n = 0;
        int r;

        for (uint32_t k = 0; k < x.n && n < ELEMENTSOF(starts); k++) {
            uint32_t a = there[x.starts[k].application];

            if (a != CHAINS_NONE)
                starts[n++] = (LoggedStart){a, x.starts[k].at_msec, x.starts[k].end_msec};
        }
        x.starts = starts;
        x.n = n;
        r = session_log_add(&to->log, &x, chains_compare_applications, &names);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Adds the session that ends to the log of a history. Returns 0 or -ENOMEM. */
static int log_session(const Chains *c, UserHistory *h)
{
    const ChainsSession *s = &c->session;
    const ChainsOfHistory names = {c, h};
    _cleanup_free_ LoggedStart *starts = calloc(s->n_starts + 1, sizeof(*starts));
    LoggedSession x = {.begin_msec = s->begin_realtime_msec,
                       .length_msec = (uint32_t)MIN(elapsed(c, s->begin, 0), UINT32_MAX),
                       .starts = starts};

    if (!starts)
        return -ENOMEM;
    for (size_t i = 0; i < s->n_starts; i++) {
        uint32_t a = user_history_find(h, s->starts[i].application);

        if (a != CHAINS_NONE)
            starts[x.n++] = (LoggedStart){a, s->starts[i].at_msec,
                                          MIN(s->starts[i].end_msec, x.length_msec)};
    }
    return session_log_add(&h->log, &x, chains_compare_applications, &names);
}

int chains_end(Chains *c)
{
    ChainsSession *s = &c->session;
    int r = 0;

    if (!s->active)
        return 0;
    for (size_t i = 0; i < s->n_histories; i++)
        flush_last(c, s->histories[i]);
    while (s->n_running > 0) {
        uint32_t id = s->running[s->n_running - 1];

        for (size_t i = 0; i < s->n_histories; i++)
            flush_running(c, s->histories[i], id, false);
        s->n_running--;
    }
    for (size_t i = 0; i < s->n_histories; i++) {
        add_time(c, &s->histories[i]->time, elapsed(c, s->begin, 0));
        add_event(c, &s->histories[i]->sessions);
        flush_age(c, s->histories[i]);
        if (r >= 0)
            r = log_session(c, s->histories[i]);
    }
    if (s->applications)
        memset(s->applications, 0, s->allocated_applications * sizeof(*s->applications));
    s->active = false;
    s->n_histories = 0;
    return r;
}

static void remember_start(ChainsSession *s, uint32_t id, usec_t now)
{
    if (s->n_recent == CHAINS_RECENT_MAX) {
        memmove(s->recent, s->recent + 1, (CHAINS_RECENT_MAX - 1) * sizeof(*s->recent));
        s->n_recent--;
    }
    s->recent[s->n_recent++] = (ChainsRecent){id, now};
}

int chains_follow(Chains *c)
{
    ChainsSession *s = &c->session;
    int r = chains_end(c);

    s->active = true;
    s->n_learned = 0;
    s->n_starts = 0;
    s->n_latest = 0;
    s->begin_realtime_msec = c->realtime / USEC_PER_MSEC;
    s->begin = s->last_since = c->now;
    s->last = CHAINS_NONE;
    s->n_recent = 0;
    remember_start(s, CHAINS_NONE, c->now);
    return r;
}

int chains_begin(Chains *c, uint32_t user)
{
    ChainsSession *s = &c->session;
    UserHistory *h = NULL;
    int r = user == UID_INVALID ? 0 : chains_history(c, user, &h);

    if (r >= 0)
        r = chains_follow(c);
    if (r < 0)
        return r;
    s->histories[s->n_histories++] = c->histories[0];
    if (h)
        s->histories[s->n_histories++] = h;
    for (size_t i = 0; i < s->n_histories; i++)
        add_event(c, &s->histories[i]->applications[CHAINS_BEGIN].starts);
    return 0;
}

/* Returns the sum of the time that an application has run, the present session included. */
static DecayedSum on_until_now(const Chains *c, const UserHistory *h, const ChainsApplication *x)
{
    return chains_learns(c, h) && chains_runs(c, x->id)
                   ? plus_time(c, x->on, elapsed(c, since(c, x->id), 0))
                   : x->on;
}

static DecayedSum time_until_now(const Chains *c, const UserHistory *h)
{
    return chains_learns(c, h) ? plus_time(c, h->time, elapsed(c, c->session.begin, 0)) : h->time;
}

/* Counts a co-occurrence of two applications, one of which starts now. */
static int note_co_occurrence(const Chains *c, UserHistory *h, uint32_t a, uint32_t b)
{
    const Neighbour *neighbour = user_history_find_neighbour(h, b, a);
    ChainsPair *p;
    int r;

    if (!neighbour)
        return h->n_co_occurring < CHAINS_LIVE_PAIRS_MAX ? user_history_add_neighbours(h, a, b) : 0;
    if (neighbour->pair != CHAINS_NONE) {
        p = &h->pairs[neighbour->pair];
        p->co_occurrences += p->co_occurrences < UINT32_MAX;
        return 0;
    }
    r = user_history_add_pair(h, a, b, &p);
    if (r < 0)
        return r;
    p->co_occurrences = 2;
    p->before_time = time_until_now(c, h);
    for (unsigned i = 0; i < 2; i++) {
        const ChainsApplication *x = &h->applications[i == 0 ? p->a : p->b];

        p->before_on[i] = on_until_now(c, h, x);
        p->before_starts[i] = x->starts;
        p->before_exits[i] = x->exits;
    }
    p->since = c->now;
    return 0;
}

/* Adds the start of an application to a history. */
static int learn_start(const Chains *c, UserHistory *h, uint32_t id)
{
    const ChainsSession *s = &c->session;
    uint32_t b, last;
    ChainsPair *p;
    int r;

    r = user_history_add(h, id, &b);
    if (r < 0)
        return r;
    for (size_t i = 0; i < s->n_recent; i++) {
        r = note_co_occurrence(c, h, user_history_find(h, s->recent[i].id), b);
        if (r < 0)
            return r;
    }
    flush_last(c, h);
    last = user_history_find(h, s->last);
    p = user_history_find_pair(h, last, b);
    if (last == b)
        add_event(c, &h->applications[b].next_self);
    else if (p)
        add_event(c, &p->next[b == p->b]);
    for (size_t first = 0; first < s->n_running; first += FOUND_MAX) {
        FoundPairs found;

        find_pairs(c, h, b, first, &found);
        for (size_t i = 0; i < found.n; i++)
            if (found.pairs[i])
                add_event(c, &found.pairs[i]->starts[b == found.pairs[i]->b]);
    }
    add_event(c, &h->applications[b].starts);
    if (!s->applications[id].started)
        add_event(c, &h->applications[b].sessions);
    return 0;
}

/* Advances the revision, because a start or an exit is learned (chains_revision()). */
static void advance_revision(Chains *c)
{
    if (c->session.n_histories == 0)
        return;
    if (c->session.n_learned++ == 0)
        c->revision += c->wall;
    c->revision = (c->revision + 1) & INT64_MAX;
}

/* Makes room for the application `id` and for one more running application. */
static int reserve_running(ChainsSession *s, uint32_t id)
{
    int r;

    r = grow_array_zeroed(&s->applications, &s->allocated_applications, (size_t)id + 1,
                          sizeof(*s->applications));
    if (r < 0)
        return r;
    r = grow_array(&s->starts, &s->allocated_starts, s->n_starts + 1, sizeof(*s->starts));
    if (r < 0)
        return r;
    return grow_array(&s->running, &s->allocated_running, s->n_running + 1, sizeof(*s->running));
}

int chains_start(Chains *c, uint32_t id)
{
    ChainsSession *s = &c->session;
    size_t n = 0;
    int r;

    if (id >= CHAINS_IDS_MAX)
        return -E2BIG;
    r = s->active ? 0 : chains_begin(c, UID_INVALID);
    if (r >= 0 && chains_runs(c, id)) {
        s->applications[id].processes += s->applications[id].processes < UINT32_MAX;
        return 0;
    }
    if (r >= 0)
        r = reserve_running(s, id);
    if (r < 0)
        return r;
    /* The application that started last co-occurs with the next one, however much time lies between
     * the two starts. Slow successions therefore get a chain, too (thesis 3.4.3). */
    for (size_t i = 0; i < s->n_recent; i++)
        if (s->recent[i].id != id &&
            (i + 1 == s->n_recent || c->now - s->recent[i].at <= c->window_usec))
            s->recent[n++] = s->recent[i];
    s->n_recent = n;
    for (size_t i = 0; i < s->n_histories; i++) {
        r = learn_start(c, s->histories[i], id);
        if (r < 0)
            return r;
    }
    advance_revision(c);
    s->applications[id] = (SessionApplication){
            .since = c->now, .processes = 1, .started = true, .start = CHAINS_NONE};
    s->running[s->n_running++] = id;
    if (s->n_starts < SESSION_LOG_STARTS_MAX) {
        s->applications[id].start = (uint32_t)s->n_starts;
        s->starts[s->n_starts++] =
                (LoggedStart){id, (uint32_t)MIN(elapsed(c, s->begin, 0), UINT32_MAX), UINT32_MAX};
    }
    s->last = id;
    s->last_since = c->now;
    memmove(s->latest + 1, s->latest, (CHAINS_LATEST - 1) * sizeof(*s->latest));
    s->latest[0] = id;
    s->n_latest = MIN(s->n_latest + 1, (size_t)CHAINS_LATEST);
    remember_start(s, id, c->now);
    return 1;
}

/* Adds the exit of an application to a history. */
static void learn_exit(const Chains *c, UserHistory *h, uint32_t id)
{
    const ChainsSession *s = &c->session;
    uint32_t b = user_history_find(h, id), last = user_history_find(h, s->last);
    ChainsPair *p = user_history_find_pair(h, last, b);

    if (last == b)
        add_time(c, &h->applications[b].last_self, elapsed(c, s->last_since, 0));
    else if (p)
        add_time(c, &p->last[b == p->b], elapsed(c, MAX(s->last_since, since(c, id)), p->since));
    flush_running(c, h, id, true);
}

int chains_exit(Chains *c, uint32_t id)
{
    ChainsSession *s = &c->session;

    if (!chains_runs(c, id))
        return 0;
    if (s->applications[id].processes > 1) {
        s->applications[id].processes--;
        return 0;
    }
    for (size_t i = 0; i < s->n_histories; i++)
        learn_exit(c, s->histories[i], id);
    advance_revision(c);
    s->applications[id].processes = 0;
    if (s->applications[id].start < s->n_starts)
        s->starts[s->applications[id].start].end_msec =
                (uint32_t)MIN(elapsed(c, s->begin, 0), UINT32_MAX);
    for (size_t i = 0; i < s->n_running; i++)
        if (s->running[i] == id) {
            s->running[i] = s->running[--s->n_running];
            break;
        }
    return 1;
}

/* --- reading ---------------------------------------------------------------------------------- */

double chains_time_usec(const Chains *c, const UserHistory *h)
{
    return chains_usec(c, time_until_now(c, h));
}

void chains_totals(const Chains *c, const UserHistory *h, uint32_t application, ChainsTotals *ret)
{
    const ChainsApplication *x = &h->applications[application];

    ret->starts = chains_value(c, x->starts);
    ret->on_usec = chains_usec(c, on_until_now(c, h, x));
    ret->off_usec = max_double(chains_time_usec(c, h) - ret->on_usec, 0);
}

/* Returns the number of events that were counted since a chain began. */
static double events_since(const Chains *c, DecayedSum total, DecayedSum before)
{
    return max_double(chains_value(c, total) - chains_value(c, before), 0);
}

static double usec_since(const Chains *c, DecayedSum total, DecayedSum before)
{
    return max_double(chains_usec(c, total) - chains_usec(c, before), 0);
}

/* Returns the sum of the time that both ran, the present session included. */
static DecayedSum both_until_now(const Chains *c, const UserHistory *h, const ChainsPair *p)
{
    uint32_t a = h->applications[p->a].id, b = h->applications[p->b].id;

    return chains_learns(c, h) && chains_runs(c, a) && chains_runs(c, b)
                   ? plus_time(c, p->both, elapsed(c, MAX(since(c, a), since(c, b)), p->since))
                   : p->both;
}

void chains_states(const Chains *c, const UserHistory *h, const ChainsPair *p, ChainsStates *ret)
{
    const ChainsApplication *x[2] = {&h->applications[p->a], &h->applications[p->b]};
    double time = usec_since(c, time_until_now(c, h), p->before_time), on[2];
    double both = chains_usec(c, both_until_now(c, h, p));

    *ret = (ChainsStates){0};
    for (unsigned i = 0; i < 2; i++) {
        unsigned other = i == 0 ? 2 : 1, me = i == 0 ? 1 : 2;
        double starts = chains_value(c, p->starts[i]), exits = chains_value(c, p->exits[i]);

        on[i] = usec_since(c, on_until_now(c, h, x[i]), p->before_on[i]);
        ret->n[other][3] = starts;
        ret->n[3][other] = exits;
        ret->n[0][me] = max_double(events_since(c, x[i]->starts, p->before_starts[i]) - starts, 0);
        ret->n[me][0] = max_double(events_since(c, x[i]->exits, p->before_exits[i]) - exits, 0);
        ret->dwell_usec[me] = max_double(on[i] - both, 0);
    }
    ret->dwell_usec[3] = both;
    ret->dwell_usec[0] = max_double(time - on[0] - on[1] + both, 0);
}

size_t chains_size(const Chains *c)
{
    size_t n = sizeof(*c) + c->names.n * sizeof(*c->names.names) +
               c->session.allocated_applications * sizeof(*c->session.applications);

    for (size_t i = 0; i < c->n_histories; i++)
        n += user_history_size(c->histories[i]);
    return n;
}
