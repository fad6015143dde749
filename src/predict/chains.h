/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which applications follow which: continuous-time Markov chains for pairs of applications (thesis
 * 3.2.2, 3.5.3), kept as fading sums (base/decayed-sum.h) so that models merge exactly. Pure.
 *
 * A history is what one user does, or everybody (UID_INVALID): the thesis's question whether the
 * pair (user, application) should be modelled (3.4.6) is answered with both.
 *
 * A pair (a, b) has four states, s = a runs + 2 * (b runs). What is wanted of it is N[s][j], how
 * often it went from s to j, and dwell[s], how long it was in s; tt[s] = dwell[s] / N[s] and
 * tp[s][j] = N[s][j] / N[s]. A dwell that the session's end cuts off adds to dwell only; time
 * between sessions does not count. Only what happens while the other one runs is kept with the
 * pair; the rest is the difference to the sums of each application and of the history since the
 * pair was first seen. So an event costs a step for each application that runs, not one for each
 * that is known, and chains_states() still gives all four states exactly.
 *
 * A pair is a chain from the second time on that one of its applications has started within
 * `window` of the other's latest start (or of the session's beginning, which counts as application
 * 0); of the first time only the fact is kept. So memory is linear in what was observed. Beside the
 * four states a chain knows how often one of them was the next to start after the other, and for
 * how long it could have been: the succession the state alone cannot tell. */

#include "base/decayed-sum.h"
#include "base/macros.h"
#include "base/time-util.h"
#include "base/uid.h"

#define CHAINS_FORMAT_VERSION 2          /* version 1 is still read */
#define CHAINS_NONE           UINT32_MAX /* no application */
#define CHAINS_BEGIN          0U  /* application 0 of each history: its sessions' beginnings */
#define CHAINS_RECENT_MAX     64U /* starts remembered within the window */
#define CHAINS_IDS_MAX        (1U << 20)
#define CHAINS_PAIRS_MAX      (1U << 20) /* that have met, of one history; no more are remembered */
#define CHAINS_LIVE_PAIRS_MAX (1U << 16) /* the same while sessions are followed */
#define CHAINS_GAP_MAX        (12 * USEC_PER_HOUR) /* a longer silence is a clock that jumped */

/* How much each kind of evidence deserves (predict/mixture.c), learned online. */
#define CHAINS_BUCKETS 4
#define CHAINS_EXPERTS 6

/* Sessions are more likely to end at some ages than at others: bounds in minutes 5, 10, 20, … 320.
 */
#define CHAINS_AGES 8

typedef struct Neighbour {
    uint32_t other; /* application */
    uint32_t pair;  /* CHAINS_NONE: they have met once, which is no chain yet */
} Neighbour;

/* All sums of time are in milliseconds, of counts in events, times the weight of their moment. */
typedef struct ChainsApplication {
    uint32_t id; /* the caller's; CHAINS_NONE for CHAINS_BEGIN */
    DecayedSum starts, exits, on;
    DecayedSum sessions;   /* in which it started */
    DecayedSum last;       /* time during which it was the one that had started last */
    DecayedSum next_self;  /* starts that followed a start of its own */
    DecayedSum last_self;  /* of `last`: while it ran, and could not start */
    Neighbour *neighbours; /* sorted by `other` */
    uint32_t n_neighbours, allocated_neighbours;
    /* of the present session */
    bool running, started;
    usec_t since;
} ChainsApplication;

/* Index [0] is a, [1] is b; a < b. */
typedef struct ChainsPair {
    uint32_t a, b;
    uint32_t co_occurrences; /* starts within the window of one another */
    DecayedSum both;         /* time during which both ran */
    DecayedSum starts[2];    /* of the one while the other ran */
    DecayedSum exits[2];
    DecayedSum next[2]; /* of the one, as next start after the other's */
    DecayedSum last[2]; /* time: the other was last, and the one ran */
    /* What these were when the chain began */
    DecayedSum before_time, before_on[2], before_starts[2], before_exits[2];
    usec_t since; /* when it began, if in the present session */
} ChainsPair;

typedef struct ChainsRecent {
    uint32_t application;
    usec_t at;
} ChainsRecent;

typedef struct UserHistory {
    uint32_t user; /* uid, or UID_INVALID */
    DecayedSum time, sessions;
    DecayedSum age_time[CHAINS_AGES];  /* time that sessions have spent at that age */
    DecayedSum age_ended[CHAINS_AGES]; /* sessions that have ended at it */
    ChainsApplication *applications;
    size_t n_applications, allocated_applications;
    uint32_t *index; /* id -> application */
    size_t allocated_index;
    ChainsPair *pairs;
    size_t n_pairs, allocated_pairs;
    size_t n_co_occurring; /* pairs that have met, chains or not */
    /* The present session */
    bool in_session;
    usec_t begin;
    uint32_t *running;
    size_t n_running, allocated_running;
    uint32_t last; /* application that started last; CHAINS_BEGIN: none yet */
    usec_t last_since;
    ChainsRecent recent[CHAINS_RECENT_MAX];
    size_t n_recent;
} UserHistory;

typedef struct Chains {
    usec_t halflife_usec, window_usec;
    uint64_t generation;     /* of all DecayedSums in it */
    UserHistory **histories; /* [0] is everybody's */
    size_t n_histories, allocated_histories;
    DecayedSum attributed[CHAINS_BUCKETS][CHAINS_EXPERTS]; /* starts, in 1/1024 */
    DecayedSum expected[CHAINS_BUCKETS][CHAINS_EXPERTS];
    char **names; /* by id; needed for JSON and merging only */
    size_t n_names, allocated_names;
    struct ChainsName *names_index;
    usec_t seen; /* latest time the caller gave */
    usec_t now;  /* the same, less silences beyond CHAINS_GAP_MAX: what all instants are on */
    uint64_t weight;
} Chains;

/* An empty set of chains. -EINVAL if half-life or window is zero, -ENOMEM. */
int chains_new(usec_t halflife_usec, usec_t window_usec, Chains **ret);
Chains *chains_free(Chains *c);
DEFINE_CLEANUP(Chains *, chains_free);
#define _cleanup_chains_ _cleanup_(chains_freep)

/* Finds or makes a user's history. 0 or -ENOMEM. */
int chains_history(Chains *c, uint32_t user, UserHistory **ret);

/* The id of an application's name (a path): found or added. 0, -E2BIG, -ENOMEM. */
int chains_add_name(Chains *c, const char *name, uint32_t *ret);

/* The same, if it has one; -ENOENT otherwise. */
int chains_find_name(const Chains *c, const char *name, uint32_t *ret);

/* `now` is on any one clock that runs while the machine is on; times that run back count as the
 * latest seen. `realtime` is the wall clock at that moment: what sums is by wall-clock time. */
void chains_set_time(Chains *c, usec_t now, usec_t realtime);

/* A session begins, an application starts, exits, the session ends, at chains' time. Starting what
 * runs, or exiting what does not, changes nothing. 0, -E2BIG (id), -ENOMEM. */
int chains_begin(Chains *c, UserHistory *h);
int chains_start(Chains *c, UserHistory *h, uint32_t id);
void chains_exit(Chains *c, UserHistory *h, uint32_t id);
void chains_end(Chains *c, UserHistory *h);

/* The application with that id in the history, or CHAINS_NONE; how often two have met; their chain,
 * or NULL. */
uint32_t chains_find(const UserHistory *h, uint32_t id);
uint32_t chains_co_occurrences(const UserHistory *h, uint32_t a, uint32_t b);
const ChainsPair *chains_pair(const UserHistory *h, uint32_t a, uint32_t b);

/* The sums of an application and of the history up to now, the present session included, as real
 * numbers: events and microseconds, weighted so that one happening now counts 1. */
typedef struct ChainsTotals {
    double starts, on_usec, off_usec;
} ChainsTotals;
void chains_totals(const Chains *c, const UserHistory *h, uint32_t application, ChainsTotals *ret);
double chains_time_usec(const Chains *c, const UserHistory *h);
double chains_value(const Chains *c, DecayedSum f);

/* Where an age of sessions ends, since their beginning; USEC_INFINITY for the last. */
usec_t chains_age_end(unsigned age);

/* The four states of a pair. Never negative; transitions are where one application moves. */
typedef struct ChainsStates {
    double n[4][4];
    double dwell_usec[4];
} ChainsStates;
void chains_states(const Chains *c, const UserHistory *h, const ChainsPair *p, ChainsStates *ret);

/* A copy in which the sessions have ended at chains' time: what there is to save while they go on.
 * 0 or -ENOMEM. */
int chains_copy_ended(const Chains *c, Chains **ret);

/* Bytes in memory. */
size_t chains_size(const Chains *c);

/* *ret = everything both know: exact, associative and commutative. Applications are matched by
 * name. Sessions must have ended (-EBUSY), half-life and window be equal (-EINVAL), every
 * application have a name (-EINVAL). -ENOMEM. */
int chains_merge(const Chains *a, const Chains *b, Chains **ret);

/* True if a sum of time or of sessions has saturated. */
bool chains_is_full(const Chains *c);

/* *ret = the same without what has become negligible: chains of which less than 2^-10 of an event
 * counts any more, although nearly all that counts was observed since they began; applications that
 * have not been started for so long, with whom they have met once, and their names. One half-life
 * halves: that is after ten of them at the earliest. Counted from the time last set; of chains that
 * were read, from the beginning of their generation, so that the same content is pruned alike
 * whenever it is done. Without pruning, what once met by chance would be kept for ever.
 *
 * Why merging does not do this: it would no longer be associative. A chain says what was observed
 * *since it began*, and what it says of that is not zero even if the two never met again: it is
 * evidence against. If a chain that has faded in A is dropped before B, where it lives, is added,
 * all of A counts as before the chain; if B and C are added first, it is kept, and A's time since
 * then counts. Dropping is harmless only where a sum is zero, and merging does no more than that.
 * So it comes last, where a model is learned and saved or a fleet's sum is ready: model_prune().
 *
 * Ids of names are new: not while a predictor goes by the old ones. Sessions must have ended
 * (-EBUSY), every application have a name (-EINVAL). -ENOMEM. */
int chains_prune(const Chains *c, Chains **ret);

/* How much of each history chains_limit() leaves. */
typedef struct ChainsLimits {
    size_t applications; /* of one history */
    size_t pairs;        /* that have met, of one history */
    size_t all_pairs;    /* of all histories */
} ChainsLimits;

/* A desktop's user starts some 300 applications in a year, which meet some 10,000 times. A pair
 * takes 350 bytes. */
#define CHAINS_LIMITS_DEFAULT                                    \
    (ChainsLimits)                                               \
    {                                                            \
        .applications = 1000, .pairs = 16384, .all_pairs = 65536 \
    }

/* Drops what is beyond the limits, and with it what chains_prune() drops: of a user's history the
 * applications that were used in the fewest sessions and the pairs with the fewest events. In the
 * history of everybody an application counts as much as for the user who uses it most. If all
 * together hold too many pairs, the largest histories are cut to one size. Unchanged chains are not
 * pruned. As with chains_prune(), ids of names are new, and sessions must have ended (-EBUSY). 0,
 * -ENOMEM; then *c is valid, but has lost a part of that. */
int chains_limit(Chains **c, const ChainsLimits *limits);

/* Chains of a clock that ran ahead by more than a generation, as seen from `realtime`: what they
 * know has the weight beside one another that it had, and that of now beside others (rounded: not
 * exact as merging is). Changes nothing otherwise. Sessions must have ended (-EBUSY). */
int chains_settle_clock(Chains *c, usec_t realtime);

/* JSON text; equal knowledge gives equal bytes, and save, load, save the same. The caller frees. 0,
 * -EBUSY, -EINVAL (as above), -ENOMEM. */
int chains_to_json(const Chains *c, char **ret);

/* -EBADMSG (not JSON, truncated, fields or numbers wrong), -EPROTONOSUPPORT (another version),
 * -EMEDIUMTYPE (JSON, but no chains), -E2BIG, -ENOMEM. */
int chains_from_json(const char *text, size_t size, Chains **ret);
