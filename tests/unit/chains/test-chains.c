/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the chains: their four states, merging, and JSON. The states are compared with those of a
 * simple method that tracks every pair on every event. */

#include "chains/chains.h"
#include "evaluate/random.h"
#include "util/chains-util.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define N        6
#define HALFLIFE ((usec_t)1 << 59) /* nothing decays, all weights are equal */
#define WINDOW   (600 * USEC_PER_SEC)

static Chains *make(usec_t halflife_usec)
{
    Chains *c;

    assert_int_equal(chains_new(halflife_usec, WINDOW, &c), 0);
    for (unsigned i = 0; i < N; i++) {
        char name[] = {'/', (char)('a' + i), 0};
        uint32_t id;

        assert_int_equal(chains_add_name(c, name, &id), 0);
        assert_int_equal(id, i);
    }
    return c;
}

static Chains *make_empty(void)
{
    Chains *c;

    assert_int_equal(chains_new(HALFLIFE, WINDOW, &c), 0);
    chains_set_time(c, (EventTime){USEC_PER_SEC, USEC_PER_SEC});
    return c;
}

/* The simple method: every pair's state is tracked from its second co-occurrence. */
typedef struct Obvious {
    bool seen[N][N];
    unsigned co_occurrences[N][N];
    double n[N][N][4][4], dwell[N][N][4];
    bool running[N];
    usec_t now;
} Obvious;

static unsigned obvious_state(const Obvious *o, unsigned a, unsigned b)
{
    return (unsigned)o->running[a] + 2 * (unsigned)o->running[b];
}

static void obvious_pass(Obvious *o, usec_t now)
{
    for (unsigned a = 0; a < N; a++)
        for (unsigned b = 0; b < N; b++)
            if (o->seen[a][b])
                o->dwell[a][b][obvious_state(o, a, b)] += (double)(now - o->now);
    o->now = now;
}

static void obvious_move(Obvious *o, unsigned x, bool running)
{
    unsigned before[N][N];

    for (unsigned a = 0; a < N; a++)
        for (unsigned b = 0; b < N; b++)
            before[a][b] = obvious_state(o, a, b);
    o->running[x] = running;
    for (unsigned a = 0; a < N; a++)
        for (unsigned b = 0; b < N; b++)
            if (o->seen[a][b] && before[a][b] != obvious_state(o, a, b))
                o->n[a][b][before[a][b]][obvious_state(o, a, b)]++;
}

static uint32_t co_occurrences(const UserHistory *h, uint32_t a, uint32_t b)
{
    const Neighbour *n = user_history_find_neighbour(h, a, b);

    return !n ? 0 : n->pair == CHAINS_NONE ? 1 : h->pairs[n->pair].co_occurrences;
}

static void assert_same(const Chains *c, const Obvious *o)
{
    const UserHistory *w = c->histories[0];

    for (unsigned a = 0; a < N; a++)
        for (unsigned b = 0; b < N; b++) {
            uint32_t x = user_history_find(w, a), y = user_history_find(w, b);
            const ChainsPair *p =
                    x == CHAINS_NONE || y == CHAINS_NONE ? NULL : user_history_find_pair(w, x, y);
            ChainsStates s;

            assert_int_equal(p != NULL, o->seen[a][b]);
            assert_int_equal(x == CHAINS_NONE || y == CHAINS_NONE ? 0 : co_occurrences(w, x, y),
                             o->co_occurrences[a][b]);
            if (!p)
                continue;
            if (p->a != x)
                continue; /* the pair is compared in its other orientation */
            chains_states(c, w, p, &s);
            for (unsigned i = 0; i < 4; i++) {
                assert_true(fabs(s.dwell_usec[i] - o->dwell[a][b][i]) < 1);
                for (unsigned j = 0; j < 4; j++)
                    assert_true(fabs(s.n[i][j] - o->n[a][b][i][j]) < 1e-6);
            }
        }
}

static void test_states_against_the_obvious_way(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        _cleanup_chains_ Chains *c = make(HALFLIFE);
        UserHistory *w = c->histories[0];
        Random random = {seed};
        Obvious o = {0};
        usec_t now = 0;

        for (unsigned session = 0; session < 5; session++) {
            struct {
                unsigned x;
                usec_t at;
            } starts[64];
            unsigned n_starts = 0;

            now += 1000 * USEC_PER_SEC; /* between sessions no time counts */
            o.now = now;
            chains_set_time(c, (EventTime){now, now});
            assert_int_equal(chains_begin(c, w->user), 0);
            for (unsigned i = 0; i < 60; i++) {
                unsigned x = random_below(&random, N);

                now += random_below(&random, 300) * USEC_PER_SEC;
                chains_set_time(c, (EventTime){now, now});
                obvious_pass(&o, now);
                if (o.running[x]) {
                    chains_exit(c, x);
                    obvious_move(&o, x, false);
                } else {
                    for (unsigned k = 0; k < n_starts; k++) {
                        unsigned y = starts[k].x;

                        bool again = false; /* only its latest start counts */

                        for (unsigned l = k + 1; l < n_starts; l++)
                            again = again || starts[l].x == y;
                        /* The application that started last counts, however long ago it started. */
                        if (again || y == x || (k + 1 < n_starts && now - starts[k].at > WINDOW))
                            continue;
                        o.co_occurrences[x][y] = ++o.co_occurrences[y][x];
                        o.seen[x][y] = o.seen[y][x] = o.co_occurrences[x][y] >= 2;
                    }
                    assert_int_equal(chains_start(c, x), 1);
                    obvious_move(&o, x, true);
                    starts[n_starts].x = x;
                    starts[n_starts++].at = now;
                }
                assert_same(c, &o);
            }
            now += 77 * USEC_PER_SEC;
            chains_set_time(c, (EventTime){now, now});
            obvious_pass(&o, now);
            chains_end(c);
            memset(o.running, 0,
                   sizeof(o.running)); /* the session is cut off, without transitions */
            assert_same(c, &o);
        }
    }
}

/* Two applications that start at most 600 s apart co-occur. The application that started last
 * co-occurs with the next one, however long ago it started, so a user who starts one application an
 * hour has chains, too. The second co-occurrence begins a chain. */
static void test_window(void **state)
{
    _cleanup_chains_ Chains *c = make(HALFLIFE);
    UserHistory *w = c->histories[0];
    usec_t now = 1000 * USEC_PER_SEC;

    chains_set_time(c, (EventTime){now, now});
    assert_int_equal(chains_begin(c, w->user), 0);
    chains_set_time(c, (EventTime){now + WINDOW * 2, now});
    assert_int_equal(chains_start(c, 0), 1);
    chains_set_time(c, (EventTime){now + WINDOW * 2 + 1, now});
    assert_int_equal(chains_start(c, 1), 1);
    chains_set_time(c, (EventTime){now + WINDOW * 3 + 1, now});
    assert_int_equal(chains_start(c, 2), 1);
    assert_int_equal(co_occurrences(w, 1, 3), 0); /* 600 s and a microsecond apart */
    assert_int_equal(co_occurrences(w, 2, 3), 1); /* 600 s apart */
    assert_null(user_history_find_pair(w, 2, 3));
    for (unsigned i = 0; i < 2; i++) {
        chains_exit(c, i);
        chains_set_time(c, (EventTime){now + WINDOW * (20 + 10 * i), now});
        assert_int_equal(chains_start(c, i), 1);
    }
    assert_int_equal(co_occurrences(w, 1, 3), 1); /* hours apart, but 1 was the next to start */
    assert_int_equal(co_occurrences(w, 1, 2), 2);
    assert_int_equal(co_occurrences(w, 2, 3), 1); /* 1 started in between */
    assert_non_null(user_history_find_pair(w, 1, 2));
    assert_null(user_history_find_pair(w, 1, 3));
}

/* Sets the time in plausible steps. */
static void advance_to(Chains *c, usec_t time)
{
    while (time > c->clock.latest && time - c->clock.latest > DECAY_CLOCK_STEP)
        chains_set_time(c, (EventTime){c->clock.latest + DECAY_CLOCK_STEP,
                                       c->clock.latest + DECAY_CLOCK_STEP});
    chains_set_time(c, (EventTime){time, time});
}

/* Old observations weigh less: counts halve in a half-life. */
static void test_fading(void **state)
{
    usec_t halflife_usec = DECAYED_SUM_HALFLIFE_DEFAULT;
    _cleanup_chains_ Chains *c = make(halflife_usec);
    UserHistory *w = c->histories[0];
    ChainsTotals t;

    chains_set_time(c, (EventTime){halflife_usec * 16, halflife_usec * 16});
    assert_int_equal(chains_begin(c, w->user), 0);
    assert_int_equal(chains_start(c, 0), 1);
    chains_end(c);
    chains_totals(c, w, user_history_find(w, 0), &t);
    assert_true(fabs(t.starts - 1) < 1e-9);
    chains_set_time(c, (EventTime){halflife_usec * 17, halflife_usec * 17});
    chains_totals(c, w, user_history_find(w, 0), &t);
    assert_true(fabs(t.starts - 0.5) < 1e-9);
    advance_to(c, halflife_usec * 34); /* in the next generation */
    chains_totals(c, w, user_history_find(w, 0), &t);
    assert_true(fabs(t.starts - 1 / (double)(1 << 18)) < 1e-6);
    advance_to(c, halflife_usec * 160);
    chains_totals(c, w, user_history_find(w, 0), &t);
    assert_true(t.starts == 0);
}

/* A clock that jumps ahead counts as a gap of twelve hours; while it runs back, time stands still.
 */
static void test_clock_jumps(void **state)
{
    _cleanup_chains_ Chains *c = make(HALFLIFE);
    UserHistory *w = c->histories[0];
    usec_t now = 1000 * USEC_PER_SEC;
    ChainsTotals t;

    chains_set_time(c, (EventTime){now, now});
    assert_int_equal(chains_start(c, 0), 1);
    chains_set_time(c, (EventTime){now + 1000 * 24 * USEC_PER_HOUR, now});
    chains_set_time(c, (EventTime){5, 5});
    chains_set_time(c, (EventTime){now + 1000 * 24 * USEC_PER_HOUR + 7 * USEC_PER_SEC, now});
    chains_exit(c, 0);
    chains_totals(c, w, user_history_find(w, 0), &t);
    assert_true(fabs(t.on_usec - (double)(CHAINS_GAP_MAX + 7 * USEC_PER_SEC)) < 1000);
    assert_true(fabs(chains_time_usec(c, w) - t.on_usec) < 1000);
}

/* One session with a date half a year ahead, and sessions on a clock that restarts at the same date
 * each time: little decays. */
static void test_wrong_dates(void **state)
{
    usec_t halflife_usec = DECAYED_SUM_HALFLIFE_DEFAULT;
    usec_t right = 3000 * halflife_usec, old = DECAY_CLOCK_MIN + USEC_PER_HOUR;
    const usec_t dates[] = {right + 26 * halflife_usec, right + halflife_usec, old, old, 0, old,
                            right + 2 * halflife_usec};
    _cleanup_chains_ Chains *c = make(halflife_usec);
    UserHistory *w = c->histories[0];
    ChainsTotals t;

    for (size_t i = 0; i <= ELEMENTSOF(dates); i++) {
        usec_t at = (i + 1) * USEC_PER_HOUR, date = i == 0 ? right : dates[i - 1];

        chains_set_time(c, (EventTime){at, date});
        assert_int_equal(chains_begin(c, w->user), 0);
        assert_int_equal(chains_start(c, i == 0 ? 0 : 1), 1);
        chains_end(c);
        chains_totals(c, w, user_history_find(w, 0), &t);
        assert_true(t.starts >= 0.24);
        assert_true(c->clock.latest <= right + 2 * halflife_usec);
    }
    assert_int_equal(c->clock.offset_usec, 0);
    assert_int_equal(w->log.n, 8);
    assert_true(w->log.sessions[7].begin_msec <= (right + 2 * halflife_usec) / USEC_PER_MSEC);
}

/* Makes random chains of some sessions of two users, at different times. */
static Chains *random_chains(uint64_t seed, usec_t halflife_usec)
{
    Random random = {seed};
    Chains *c;
    usec_t now = random_below(&random, 40) * halflife_usec;
    unsigned first = random_below(&random, 3), n = 1 + random_below(&random, 3);

    assert_int_equal(chains_new(halflife_usec, WINDOW, &c), 0);
    for (unsigned i = first; i < N; i++) { /* other numbers for the same names */
        char name[] = {'/', (char)('a' + (i * 5 + seed) % N), 0};
        uint32_t id;

        assert_int_equal(chains_add_name(c, name, &id), 0);
    }
    for (unsigned session = 0; session < n; session++) {
        UserHistory *w;

        assert_int_equal(chains_history(c, 1000 + random_below(&random, 2), &w), 0);
        w = random_below(&random, 4) == 0 ? c->histories[0] : w;
        now += random_below(&random, 2) * halflife_usec + USEC_PER_SEC;
        chains_set_time(c, (EventTime){now, now});
        assert_int_equal(chains_begin(c, w->user), 0);
        for (unsigned i = 0; i < 30; i++) {
            unsigned x = random_below(&random, (uint32_t)c->names.n);

            now += random_below(&random, 400) * USEC_PER_SEC;
            chains_set_time(c, (EventTime){now, now});
            if (chains_runs(c, x))
                chains_exit(c, x);
            else
                assert_int_equal(chains_start(c, x), 1);
        }
        chains_end(c);
        c->histories[0]->weights.next[session % EXPERT_BUCKETS][1].current += 12345 * seed;
        c->histories[0]->weights.losses[1][2].previous += 77 * seed;
    }
    return c;
}

/* If gcc 12 inlines this function with -O3, it takes the result for a pointer to a local variable.
 */
__attribute__((noinline)) static char *text_of(const Chains *c)
{
    char *text = NULL;

    assert_int_equal(chains_to_json(c, &text), 0);
    return text;
}

static void assert_equal_chains(const Chains *a, const Chains *b)
{
    _cleanup_free_ char *x = text_of(a), *y = text_of(b);

    assert_string_equal(x, y);
}

static Chains *merged(const Chains *a, const Chains *b)
{
    Chains *c;

    assert_int_equal(chains_merge(a, b, &c), 0);
    return c;
}

/* Merging is commutative, associative and exact, and empty chains are its neutral element. */
static void test_merge(void **state)
{
    usec_t halflife_usec = 100 * USEC_PER_HOUR;

    for (uint64_t seed = 1; seed <= 60; seed++) {
        _cleanup_chains_ Chains *a = random_chains(3 * seed, halflife_usec),
                                *b = random_chains(3 * seed + 1, halflife_usec),
                                *c = random_chains(3 * seed + 2, halflife_usec), *empty = NULL;
        _cleanup_chains_ Chains *ab = merged(a, b), *ba = merged(b, a), *bc = merged(b, c);
        _cleanup_chains_ Chains *ab_c = merged(ab, c), *a_bc = merged(a, bc);
        _cleanup_chains_ Chains *ca = merged(c, a), *ca_b = merged(ca, b), *a_empty = NULL;

        assert_int_equal(chains_new(halflife_usec, WINDOW, &empty), 0);
        a_empty = merged(a, empty);
        assert_equal_chains(ab, ba);
        assert_equal_chains(ab_c, a_bc);
        assert_equal_chains(ab_c, ca_b);
        if (a->generation >= empty->generation)
            assert_equal_chains(a_empty, a);
    }
}

/* The four states of the merged chains are the sums of the parts' states. */
static void test_merge_states(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        _cleanup_chains_ Chains *a = random_chains(2 * seed, HALFLIFE >> 8),
                                *b = random_chains(2 * seed + 1, HALFLIFE >> 8);
        _cleanup_chains_ Chains *c = merged(a, b);
        const Chains *parts[] = {a, b};
        usec_t later = 60 * (HALFLIFE >> 8);

        /* all three have the same time now */
        advance_to(a, later);
        advance_to(b, later);
        advance_to(c, later);
        for (size_t k = 0; k < c->n_histories; k++)
            for (size_t i = 0; i < c->histories[k]->n_pairs; i++) {
                const UserHistory *w = c->histories[k];
                const ChainsPair *p = &w->pairs[i];
                ChainsStates s, sum = {0};

                if (p->a == CHAINS_BEGIN)
                    continue;
                for (size_t m = 0; m < 2; m++) {
                    UserHistory *x;
                    uint32_t id, u, v;
                    const ChainsPair *q;
                    ChainsStates t;
                    Chains *part = (Chains *)parts[m];

                    assert_int_equal(chains_history(part, w->user, &x), 0);
                    assert_int_equal(
                            chains_add_name(part, c->names.names[w->applications[p->a].id], &id),
                            0);
                    u = user_history_find(x, id);
                    assert_int_equal(
                            chains_add_name(part, c->names.names[w->applications[p->b].id], &id),
                            0);
                    v = user_history_find(x, id);
                    q = u == CHAINS_NONE || v == CHAINS_NONE ? NULL
                                                             : user_history_find_pair(x, u, v);
                    if (!q)
                        continue;
                    chains_states(part, x, q, &t);
                    for (unsigned from = 0; from < 4; from++) {
                        static const unsigned swap[] = {0, 2, 1, 3};
                        unsigned f = q->a == u ? from : swap[from];

                        sum.dwell_usec[from] += t.dwell_usec[f];
                        for (unsigned to = 0; to < 4; to++)
                            sum.n[from][to] += t.n[f][q->a == u ? to : swap[to]];
                    }
                }
                chains_states(c, w, p, &s);
                for (unsigned from = 0; from < 4; from++) {
                    assert_true(fabs(s.dwell_usec[from] - sum.dwell_usec[from]) < 1e6);
                    for (unsigned to = 0; to < 4; to++)
                        assert_true(fabs(s.n[from][to] - sum.n[from][to]) < 0.01);
                }
            }
    }
}

static void test_json(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        _cleanup_chains_ Chains *a = random_chains(seed, 10 * USEC_PER_HOUR), *b = NULL;
        _cleanup_free_ char *text = text_of(a), *again = NULL;

        assert_int_equal(chains_from_json(text, strlen(text), &b), 0);
        again = text_of(b);
        assert_string_equal(text, again);
        /* The text is one line, as in older versions. */
        assert_ptr_equal(strstr(text, "{\"type\":\"headstart-chains\",\"version\":4,\"half"), text);
        assert_string_equal(text + strlen(text) - 4, "]}]}");
        assert_null(strpbrk(text, " \n"));
    }
}

/* Chains that have learned different things have different revisions, whatever operations
 * follow. */
static void test_revision(void **state)
{
    _cleanup_chains_ Chains *a = random_chains(7, 10 * USEC_PER_HOUR),
                            *b = random_chains(8, 10 * USEC_PER_HOUR), *ab = merged(a, b),
                            *ba = merged(b, a), *read = NULL, *copy = NULL, *less = NULL;
    _cleanup_free_ char *text = text_of(a);
    uint64_t before = chains_revision(a);

    assert_true(before > 0 && before != chains_revision(b));
    assert_int_equal(chains_revision(NULL), 0);
    assert_true(chains_revision(ab) == chains_revision(ba));
    assert_true(chains_revision(ab) != before && chains_revision(ab) != chains_revision(b));
    assert_int_equal(chains_from_json(text, strlen(text), &read), 0);
    assert_true(chains_revision(read) == before);
    assert_int_equal(chains_prune(a, &less), 0);
    assert_true(chains_revision(less) == before);
    /* A session without events changes nothing. Each event that is learned changes the revision. A
     * session that is not learned changes nothing. */
    assert_int_equal(chains_begin(a, 1000), 0);
    chains_end(a);
    assert_true(chains_revision(a) == before);
    chains_follow(a);
    assert_int_equal(chains_start(a, 0), 1);
    chains_end(a);
    assert_true(chains_revision(a) == before);
    assert_int_equal(chains_start(a, 0), 1);
    assert_true(chains_revision(a) != before);
    before = chains_revision(a);
    assert_int_equal(chains_start(a, 0), 0);
    assert_true(chains_revision(a) == before);
    assert_int_equal(chains_exit(a, 0), 0); /* one of two processes */
    assert_true(chains_revision(a) == before);
    assert_int_equal(chains_exit(a, 0), 1);
    assert_true(chains_revision(a) != before);
    before = chains_revision(a);
    assert_int_equal(chains_copy_ended(a, &copy), 0);
    assert_true(chains_revision(copy) == before);
}

/* Names are bytes in memory and escaped in JSON. */
static void test_names_are_bytes(void **state)
{
    static const char *const names[] = {"/a%b", "/\xff\x01", "/plain", "/a%25b"};
    _cleanup_chains_ Chains *c = make_empty(), *d = NULL;
    _cleanup_free_ char *text = NULL, *again = NULL;
    uint32_t id;

    for (size_t i = 0; i < ELEMENTSOF(names); i++) {
        assert_int_equal(chains_add_name(c, names[i], &id), 0);
        assert_int_equal(chains_start(c, id), 1);
    }
    chains_end(c);
    text = text_of(c);
    assert_non_null(strstr(text, "\"names\":[\"/%FF%01\",\"/a%2525b\",\"/a%25b\",\"/plain\"]"));
    assert_int_equal(chains_from_json(text, strlen(text), &d), 0);
    for (size_t i = 0; i < ELEMENTSOF(names); i++)
        assert_int_equal(chains_find_name(d, names[i], &id), 0);
    again = text_of(d);
    assert_string_equal(text, again);
}

/* Reads chains that contain these names and nothing else. */
static int read_names(const char *names)
{
    static const char head[] =
            "{\"type\":\"headstart-chains\",\"version\":4,\"halflife_usec\":9,"
            "\"window_usec\":5,\"generation\":0,\"revision\":0,\"histories\":[],";
    _cleanup_chains_ Chains *c = NULL;
    char text[2048];
    snprintf(text, sizeof(text), "%s\"names\":[%s]}", head, names);
    return chains_from_json(text, strlen(text), &c);
}

/* Names must be sorted and different after unescaping. Without this check, a name in two spellings
 * would be one application with two numbers. */
static void test_bad_names(void **state)
{
    assert_int_equal(read_names("\"/%61%25b\",\"/b\""), 0);
    assert_int_equal(read_names("\"/%61%25b\",\"/a%25b\""), -EBADMSG);
    assert_int_equal(read_names("\"/b\",\"/a\""), -EBADMSG);
    assert_int_equal(read_names("\"/a%\""), -EBADMSG);
    assert_int_equal(read_names("\"/a%00\""), -EBADMSG);
}

/* Reads chains of versions 1 and 2. They have coarser classes of ages, no log and no weights.
 * Everything else is the same. */
static void test_previous_versions(void **state)
{
    static const char *const texts[] = {
            "{\"type\":\"headstart-chains\",\"version\":1,\"halflife\":9000000,\"window\":5,"
            "\"generation\":3,\"names\":[\"/a\"],\"evidence\":[1,2],\"worlds\":[{\"user\":null,"
            "\"sums\":[256,0,2,0,768,0,4,0,5,0,6,0,7,0,8,0,9,0,10,0,11,0,12,0,13,0,14,0,15,0,16,0,17,0,18,"
            "0],\"applications\":[[0,1,0,2,0,3,0,4,0,5,0,6,0,7,0],[1,1,0,2,0,3,0,4,0,5,0,6,0,7,0]],"
            "\"pairs\":[[0,1,1]]}]}",
            "{\"type\":\"headstart-chains\",\"version\":2,\"halflife_usec\":9000000,"
            "\"window_usec\":5,\"generation\":3,\"revision\":7,\"names\":[\"/a\"],\"evidence\":[1,2],"
            "\"histories\":[{\"user\":null,"
            "\"sums\":[256,0,2,0,768,0,4,0,5,0,6,0,7,0,8,0,9,0,10,0,11,0,12,0,13,0,14,0,15,0,16,0,17,0,18,"
            "0],\"applications\":[[0,1,0,2,0,3,0,4,0,5,0,6,0,7,0],[1,1,0,2,0,3,0,4,0,5,0,6,0,7,0]],"
            "\"pairs\":[[0,1,1]]}]}"};

    for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
        _cleanup_chains_ Chains *c = NULL;
        const UserHistory *h;

        assert_int_equal(chains_from_json(texts[i], strlen(texts[i]), &c), 0);
        h = c->histories[0];
        assert_int_equal(chains_revision(c), i == 0 ? 0 : 7);
        assert_int_equal(h->time.current, 1);
        assert_int_equal(h->sessions.current, 2);
        assert_int_equal(h->age_time[5].current, 0);
        assert_int_equal(h->age_time[6].current, 3); /* until 320 s, formerly 300 s */
        assert_int_equal(h->age_ended[13].current, 18);
        assert_int_equal(h->age_ended[15].current, 0);
        assert_int_equal(h->log.n, 0);
        assert_int_equal(h->n_applications, 2);
        assert_int_equal(h->n_co_occurring, 1);
    }
}

static DecayedSum lengthen(DecayedSum f)
{
    return (DecayedSum){f.current << DECAYED_SUM_BITS, f.previous << DECAYED_SUM_BITS};
}

static void lengthen_history(UserHistory *h)
{
    DecayedSum *credits[EXPERT_SUMS];

    h->time = lengthen(h->time);
    for (size_t k = 0; k < CHAINS_AGES; k++)
        h->age_time[k] = lengthen(h->age_time[k]);
    expert_weights_sums(&h->weights, credits);
    for (size_t k = 0; k < EXPERT_SUMS; k++)
        *credits[k] = lengthen(*credits[k]);
    for (size_t k = 0; k < h->n_applications; k++) {
        h->applications[k].on = lengthen(h->applications[k].on);
        h->applications[k].last = lengthen(h->applications[k].last);
        h->applications[k].last_self = lengthen(h->applications[k].last_self);
    }
    for (size_t k = 0; k < h->n_pairs; k++) {
        ChainsPair *p = &h->pairs[k];

        p->both = lengthen(p->both);
        p->before_time = lengthen(p->before_time);
        for (unsigned x = 0; x < 2; x++) {
            p->last[x] = lengthen(p->last[x]);
            p->before_on[x] = lengthen(p->before_on[x]);
        }
    }
}

/* In version 3, a millisecond has the weight of an event. */
static void test_version_3(void **state)
{
    _cleanup_chains_ Chains *a = random_chains(7, 10 * USEC_PER_HOUR), *same = merged(a, a);
    _cleanup_chains_ Chains *old = merged(a, a), *read = NULL;
    _cleanup_free_ char *text = NULL;
    char *version;

    for (size_t i = 0; i < old->n_histories; i++)
        lengthen_history(old->histories[i]);
    text = text_of(old);
    version = strstr(text, "\"version\":4");
    assert_non_null(version);
    version[strlen("\"version\":")] = '3';
    assert_int_equal(chains_from_json(text, strlen(text), &read), 0);
    assert_equal_chains(read, same);
}

/* Merges the chains of 131,072 machines that were never switched off during a generation of sixteen
 * weeks. */
static void test_a_large_fleet(void **state)
{
    const usec_t halflife_usec = DECAYED_SUM_HALFLIFE_DEFAULT;
    const usec_t begin = 200 * DECAYED_SUM_SPAN * halflife_usec;
    _cleanup_chains_ Chains *fleet = NULL;
    ChainsTotals one, all;
    uint32_t id;

    assert_int_equal(chains_new(halflife_usec, 600 * USEC_PER_SEC, &fleet), 0);
    assert_int_equal(chains_add_name(fleet, "/usr/bin/mail", &id), 0);
    for (usec_t t = 0; t < DECAYED_SUM_SPAN * halflife_usec; t += 6 * USEC_PER_HOUR) {
        chains_set_time(fleet, (EventTime){USEC_PER_SEC + t, begin + t});
        if (t % (24 * USEC_PER_HOUR) == 0) {
            chains_end(fleet);
            assert_int_equal(chains_begin(fleet, 1000), 0);
            assert_int_equal(chains_start(fleet, id), 1);
        }
    }
    chains_end(fleet);
    chains_totals(fleet, fleet->histories[0], 1, &one);
    for (unsigned i = 0; i < 17; i++) {
        Chains *twice = merged(fleet, fleet);

        chains_free(fleet);
        fleet = twice;
    }
    assert_false(chains_is_full(fleet));
    chains_set_time(fleet, (EventTime){0, begin + DECAYED_SUM_SPAN * halflife_usec - 1});
    chains_totals(fleet, fleet->histories[0], 1, &all);
    assert_true(one.starts > 1 && one.on_usec > 24 * (double)USEC_PER_HOUR);
    assert_true(fabs(all.starts / all.on_usec / (one.starts / one.on_usec) - 1) < 1e-9);
}

/* A truncated text gives an error. A text in which one byte is changed gives an error or valid
 * chains, and never a crash. */
static void test_bad_json(void **state)
{
    _cleanup_chains_ Chains *a = random_chains(5, 10 * USEC_PER_HOUR), *c = NULL;
    _cleanup_free_ char *text = text_of(a);
    static const char bad[] = "-9\"[{x ,N";
    static const char version_5[] = "{\"type\":\"headstart-chains\",\"version\":5}";
    size_t n = strlen(text);

    for (size_t i = 0; i < n; i += i < 400 ? 1 : 37)
        assert_int_equal(chains_from_json(text, i, &c), -EBADMSG);
    for (size_t i = 0; i < n; i += i < 400 ? 1 : 11)
        for (const char *x = bad; *x; x++) {
            _cleanup_chains_ Chains *b = NULL;
            char old = text[i];
            int r;

            text[i] = *x;
            r = chains_from_json(text, n, &b);
            assert_true(r == 0 || r == -EBADMSG || r == -EMEDIUMTYPE || r == -EPROTONOSUPPORT ||
                        r == -E2BIG);
            if (r == 0) {
                _cleanup_free_ char *again _unused_ = text_of(b); /* it can be written again */
                ChainsStates s;

                for (size_t k = 0; k < b->n_histories; k++)
                    for (size_t j = 0; j < b->histories[k]->n_pairs; j++) {
                        chains_states(b, b->histories[k], &b->histories[k]->pairs[j], &s);
                        for (unsigned q = 0; q < 4; q++)
                            assert_true(s.dwell_usec[q] >= 0 && isfinite(s.dwell_usec[q]));
                    }
            }
            text[i] = old;
        }
    assert_int_equal(chains_from_json("[]", 2, &c), -EMEDIUMTYPE);
    assert_int_equal(chains_from_json("{}", 2, &c), -EMEDIUMTYPE);
    assert_int_equal(chains_from_json(version_5, strlen(version_5), &c), -EPROTONOSUPPORT);
    assert_null(c);
}

/* NaN, negative and fractional numbers are not valid half-lives. */
static void test_bad_numbers(void **state)
{
    static const char *const values[] = {"NaN",      "-1",   "0.5",   "1e3",
                                         "Infinity", "null", "\"1\"", "18446744073709551616"};
    static const char format[] =
            "{\"type\":\"headstart-chains\",\"version\":4,\"halflife_usec\":%s,"
            "\"window_usec\":5,\"generation\":0,\"revision\":0,\"names\":[],"
            "\"histories\":[]}";

    for (size_t i = 0; i < ELEMENTSOF(values); i++) {
        char text[512];
        Chains *c = NULL;

        snprintf(text, sizeof(text), format, values[i]);
        assert_int_equal(chains_from_json(text, strlen(text), &c), -EBADMSG);
    }
}

/* More promises came true than were made. The reader refuses such a file, and the correction of a
 * probability stays a probability. */
static void test_impossible_promises(void **state)
{
    _cleanup_chains_ Chains *c = random_chains(1, 10 * USEC_PER_HOUR), *back = NULL;
    DecayedSum promises[PROMISE_BINS][PROMISE_SUMS] = {0};
    _cleanup_free_ char *text = NULL, *bad = NULL;
    DecayedSum *sums = c->histories[0]->weights.promises[HORIZON_MINUTES][3];

    sums[PROMISE_N] = sums[PROMISE_CAME] = (DecayedSum){5, 7};
    assert_int_equal(chains_to_json(c, &text), 0);
    assert_int_equal(chains_from_json(text, strlen(text), &back), 0);
    sums[PROMISE_CAME].previous++;
    assert_int_equal(chains_to_json(c, &bad), 0);
    back = chains_free(back);
    assert_int_equal(chains_from_json(bad, strlen(bad), &back), -EBADMSG);

    for (unsigned i = 0; i < PROMISE_BINS; i++) {
        promises[i][PROMISE_N] = (DecayedSum){1000, 0};
        promises[i][PROMISE_SUM] = (DecayedSum){500, 0};
        promises[i][PROMISE_CAME] = (DecayedSum){5000, 0};
    }
    for (double p = 0; p < 1; p += 0.125) {
        double corrected = expert_promises_correct(promises, 1, 0, p);

        assert_true(corrected >= p && corrected <= 1);
    }
}

/* Pairs of neighbours that do not rise are refused, so that reading them takes little time. */
static void test_order_of_pairs(void **state)
{
    static const char *const pairs[] = {"[1,2,1],[1,3,1],[2,3,1]", "[1,3,1],[1,2,1]",
                                        "[1,2,1],[1,2,1]", "[2,3,1],[1,2,1]"};
    _cleanup_chains_ Chains *c = random_chains(1, 10 * USEC_PER_HOUR);
    char *text, *at, *end;

    assert_int_equal(chains_to_json(c, &text), 0);
    at = strstr(text, "\"pairs\":[") + strlen("\"pairs\":[");
    end = strstr(at, "],\"log\"");
    assert_non_null(end);
    for (size_t i = 0; i < ELEMENTSOF(pairs); i++) {
        Chains *back = NULL;
        char *edited;
        int r;

        assert_true(asprintf(&edited, "%.*s%s%s", (int)(at - text), text, pairs[i], end) > 0);
        r = chains_from_json(edited, strlen(edited), &back);
        assert_int_equal(r, i == 0 ? 0 : -EBADMSG);
        chains_free(back);
        free(edited);
    }
    free(text);
}

static void test_errors(void **state)
{
    _cleanup_chains_ Chains *a = random_chains(1, 10 * USEC_PER_HOUR),
                            *b = random_chains(2, 20 * USEC_PER_HOUR), *c = NULL, *d = NULL;
    char *text;

    assert_int_equal(chains_merge(a, b, &c), -EINVAL);
    assert_int_equal(chains_begin(a, a->histories[0]->user), 0);
    assert_int_equal(chains_to_json(a, &text), -EBUSY);
    assert_int_equal(chains_merge(a, a, &c), -EBUSY);
    assert_int_equal(chains_start(a, CHAINS_IDS_MAX), -E2BIG);
    assert_int_equal(chains_start(a, 4242), 1); /* this id has no name */
    chains_end(a);
    assert_int_equal(chains_to_json(a, &text), -EINVAL);
    assert_int_equal(chains_merge(a, a, &c), -EINVAL);
    assert_int_equal(chains_new(0, 1, &d), -EINVAL);
    assert_int_equal(chains_new(1, 0, &d), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_states_against_the_obvious_way),
            cmocka_unit_test(test_window),
            cmocka_unit_test(test_fading),
            cmocka_unit_test(test_clock_jumps),
            cmocka_unit_test(test_wrong_dates),
            cmocka_unit_test(test_merge),
            cmocka_unit_test(test_merge_states),
            cmocka_unit_test(test_json),
            cmocka_unit_test(test_revision),
            cmocka_unit_test(test_names_are_bytes),
            cmocka_unit_test(test_bad_names),
            cmocka_unit_test(test_previous_versions),
            cmocka_unit_test(test_version_3),
            cmocka_unit_test(test_a_large_fleet),
            cmocka_unit_test(test_bad_json),
            cmocka_unit_test(test_bad_numbers),
            cmocka_unit_test(test_impossible_promises),
            cmocka_unit_test(test_order_of_pairs),
            cmocka_unit_test(test_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
