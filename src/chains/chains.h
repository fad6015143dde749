/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Learns which applications follow which: continuous-time Markov chains for pairs of applications
 * (preload thesis 3.2.2, 3.5.3), kept as decayed sums so that models merge exactly. Pure.
 *
 * There is a history of everybody and one of each user (user-history.h). The thesis asks whether to
 * model the pair (user, application) instead of the application (3.4.6). Here the application is
 * modelled for each user and for everybody.
 *
 * A pair (a, b) has four states, s = (a runs) + 2 * (b runs). A chain is described by N[s][j], the
 * number of transitions from s to j, and dwell[s], the time spent in s. With N[s], the sum of
 * N[s][j] over j, the thesis's means are tt[s] = dwell[s] / N[s] and tp[s][j] = N[s][j] / N[s]. A
 * stay in a state that the end of the session cuts off adds to dwell only. Time between sessions
 * does not count. Of each application a pair stores only what happened while the other application
 * ran. Everything else is computed by subtraction from the sums of the two applications and of the
 * history since the chain began. Therefore an event costs one step for each application that runs,
 * not one for each that is known, and chains_states() still gives all four states exactly.
 *
 * Two applications co-occur in two cases: one starts within `window_usec` of the other's latest
 * start, or one is the next to start after the other, however long ago that was. The beginning of
 * the session counts as a start of application CHAINS_BEGIN. The first co-occurrence of two
 * applications only makes them neighbours; with the second their chain begins. Memory is therefore
 * linear in what was observed. A chain also counts how often one of its applications was the next
 * to start after the other, and the time in which that could have happened. The states alone do not
 * show which application started after which.
 *
 * There is one session at a time. It holds the running applications once, for all histories that
 * learn from it. */

#include "base/names.h"
#include "chains/decay-clock.h"
#include "chains/user-history.h"

/* The maximum number of starts within the window that are remembered. */
#define CHAINS_RECENT_MAX 64U

/* Sessions add pairs of neighbours to a history only while it has fewer pairs than this. */
#define CHAINS_LIVE_PAIRS_MAX (1U << 16)

/* After a longer silence a clock must have jumped, so only this much of the silence counts as
 * time. */
#define CHAINS_GAP_MAX (12 * USEC_PER_HOUR)

/* One moment on two clocks: `at` on a clock that runs while the machine is on, `realtime` on the
 * wall clock. */
typedef struct EventTime {
    usec_t at, realtime;
} EventTime;

/* The starts before the next one from which it is predicted. */
#define CHAINS_LATEST 3

/* State of an application in the present session. */
typedef struct SessionApplication {
    usec_t since;       /* start of its run */
    uint32_t processes; /* number of its processes that run; saturates */
    uint32_t start;     /* index into the session's starts; CHAINS_NONE: not logged */
    bool started;       /* it has started in this session, even if it does not run any more */
} SessionApplication;

typedef struct ChainsRecent {
    uint32_t id; /* CHAINS_NONE: the beginning of the session */
    usec_t at;
} ChainsRecent;

typedef struct ChainsSession {
    bool active;
    UserHistory *histories[2]; /* of everybody and of the user; both learn from the session;
                                  borrowed */
    size_t n_histories;
    uint64_t n_learned; /* starts and exits */
    usec_t begin;
    SessionApplication *applications; /* by id */
    size_t allocated_applications;
    uint32_t *running; /* ids, in no particular order */
    size_t n_running, allocated_running;
    uint32_t last; /* id that started last; CHAINS_NONE: none has */
    usec_t last_since;
    uint64_t begin_realtime_msec;
    LoggedStart *starts; /* of the session so far, at most SESSION_LOG_STARTS_MAX; `application` is
                            an id here */
    size_t n_starts, allocated_starts;
    uint32_t latest[CHAINS_LATEST]; /* ids of the last starts, the last one first; of all starts */
    size_t n_latest;
    ChainsRecent recent[CHAINS_RECENT_MAX];
    size_t n_recent;
} ChainsSession;

typedef struct Chains {
    usec_t halflife_usec, window_usec;
    uint64_t generation;     /* of all sums in it */
    uint64_t revision;       /* below 2^63: chains_revision() */
    UserHistory **histories; /* [0] is everybody's */
    size_t n_histories, allocated_histories;
    Names names; /* by id; JSON, merging and pruning need them */
    usec_t seen; /* latest time that the caller gave */
    /* `seen`, but each silence counts as CHAINS_GAP_MAX at most. All instants are on this clock. */
    usec_t now;
    usec_t realtime;  /* at `now`: the wall clock without implausible steps, computed by `clock` */
    usec_t wall;      /* at `now`: the wall clock */
    DecayClock clock; /* sums decay by it */
    uint64_t weight;  /* of an observation made now */
    ChainsSession session;
} Chains;

/* Makes an empty set of chains. Returns 0, -EINVAL (half-life or window is zero, or the half-life
 * is too long), or -ENOMEM. */
int chains_new(usec_t halflife_usec, usec_t window_usec, Chains **ret);
Chains *chains_free(Chains *c);
DEFINE_CLEANUP(Chains *, chains_free);
#define _cleanup_chains_ _cleanup_(chains_freep)

/* Returns a user's history, or NULL. */
UserHistory *chains_find_history(const Chains *c, uint32_t user);

/* Finds or makes a user's history. Returns 0 or -ENOMEM. */
int chains_history(Chains *c, uint32_t user, UserHistory **ret);

/* Finds or adds the id of an application's name (a path). Returns 0, -E2BIG, or -ENOMEM. */
int chains_add_name(Chains *c, const char *name, uint32_t *ret);

/* Finds the id of a name. Returns -ENOENT if the name has none. */
int chains_find_name(const Chains *c, const char *name, uint32_t *ret);

/* Sets the time of all following calls. A time before the latest one counts as the latest. Sums
 * decay by the wall clock without its implausible steps (chains/decay-clock.h). */
void chains_set_time(Chains *c, EventTime t);

/* Begins a session. The history of everybody learns from the session, and so does the history of
 * `user` unless `user` is UID_INVALID. Ends the previous session first. Returns 0 or -ENOMEM. After
 * -ENOMEM a session may have begun from which no history learns. */
int chains_begin(Chains *c, uint32_t user);

/* Begins a session from which no history learns; it only tracks the running applications. Ends the
 * previous session first. Returns 0, or -ENOMEM as chains_end(). Also after -ENOMEM the session has
 * begun. */
int chains_follow(Chains *c);

/* Counts the start of a process of an application. Begins a session if there is none
 * (chains_begin() with UID_INVALID). An application runs as long as one of its processes does.
 * Returns 1 if the application did not run before, 0 if it did, -E2BIG (the id is too large), or
 * -ENOMEM. */
int chains_start(Chains *c, uint32_t id);

/* Counts the exit of a process of an application. Returns 1 if the application stops running, 0 if
 * it still runs or did not run. */
int chains_exit(Chains *c, uint32_t id);

/* Ends the session. The time of applications that still run ends here, but they do not count as
 * exited. Returns 0, or -ENOMEM if the log of a history lacks the session. Also after -ENOMEM the
 * session has ended, and all sums contain it. */
int chains_end(Chains *c);

/* Returns how many processes of the application run in the present session. */
uint32_t chains_processes(const Chains *c, uint32_t id);
static inline bool chains_runs(const Chains *c, uint32_t id)
{
    return chains_processes(c, id) > 0;
}

/* Returns true if this history learns from the present session. */
bool chains_learns(const Chains *c, const UserHistory *h);

/* The sums of an application and of its history up to now, including the present session, as real
 * numbers: events and microseconds. An event that happens now has the weight 1. */
typedef struct ChainsTotals {
    double starts, on_usec, off_usec;
} ChainsTotals;
void chains_totals(const Chains *c, const UserHistory *h, uint32_t application, ChainsTotals *ret);
double chains_time_usec(const Chains *c, const UserHistory *h);
double chains_value(const Chains *c, DecayedSum sum); /* of events */
double chains_usec(const Chains *c, DecayedSum sum);  /* of times */

/* Returns the end of a class of ages, in time since the session began; USEC_INFINITY for the last
 * class. */
usec_t chains_age_end(unsigned age);

/* The four states of a pair. No number is negative. Only transitions in which exactly one of the
 * two applications starts or exits are counted. */
typedef struct ChainsStates {
    double n[4][4];
    double dwell_usec[4];
} ChainsStates;
void chains_states(const Chains *c, const UserHistory *h, const ChainsPair *p, ChainsStates *ret);

/* Returns a number that changes with every start and exit that is learned; 0 if there was none. It
 * is a sum (modulo 2^63): each start and exit adds 1, and the first of each session also adds the
 * wall clock. Therefore two sets of chains that learned different sessions have different numbers,
 * the merger of two sets has the sum of their numbers, and pruning does not change the number. */
static inline uint64_t chains_revision(const Chains *c)
{
    return c ? c->revision : 0;
}

/* Makes a copy in which the session has ended at the chains' time, so that it can be saved while
 * the session continues. Returns 0 or -ENOMEM. */
int chains_copy_ended(const Chains *c, Chains **ret);

/* Returns the size of the chains in memory, in bytes. */
size_t chains_size(const Chains *c);

/* Makes *ret the sum of both sets of chains. Merging is exact, associative and commutative.
 * Applications are matched by name. Returns 0, -EBUSY (a history learns from a session), -EINVAL
 * (half-lives or windows differ, or an application has no name), -ENOMEM. */
int chains_merge(const Chains *a, const Chains *b, Chains **ret);

/* Returns true if a sum that belongs to a whole history (of times, sessions, ages or weights of
 * experts) has saturated. */
bool chains_is_full(const Chains *c);

/* Makes *ret a copy without negligible parts. The copy lacks:
 * - chains that count less than 2^-10 of an event although they are old: nearly everything that
 *   their history counts was observed since they began;
 * - applications that count less than that and that no remaining chain needs, and their names;
 * - histories of users of whom nothing else is left.
 *
 * One half-life halves a sum, so a part becomes negligible after ten half-lives at the earliest.
 * The time is the one that was set last. For chains that were read from a file it is the beginning
 * of their generation, so that equal content is pruned in the same way at any time. Without
 * pruning, two applications that once co-occurred by chance would be kept forever.
 *
 * Merging does not prune, because merging would then no longer be associative. A chain counts only
 * observations since it began. If two applications never co-occurred again, the time since then is
 * evidence against the chain. Suppose a chain has decayed in A and lives in B. If it is dropped
 * from A before B is added, all of A counts as time before the chain. If B is added first, the
 * chain is kept, and the time of A since the chain began counts. Dropping is harmless only where a
 * sum is zero, and merging drops only such sums. Pruning therefore comes last, before a learned
 * model is saved and when the sum of a fleet is ready: model_prune().
 *
 * Names get new ids: do not prune while a predictor uses the old ones. Returns 0, -EBUSY, -EINVAL,
 * or -ENOMEM; the errors have the meaning that they have in chains_merge(). */
int chains_prune(const Chains *c, Chains **ret);

/* The sizes to which chains_limit() reduces each history. */
typedef struct ChainsLimits {
    size_t applications; /* of one history */
    uint64_t name_bytes; /* of one history's applications */
    uint64_t all_name_bytes;
    size_t pairs;     /* pairs of neighbours of one history */
    size_t all_pairs; /* of all histories */
} ChainsLimits;

/* A desktop's user starts some 300 applications in a year, and some 10,000 pairs of them co-occur.
 * A pair takes 350 bytes. */
#define CHAINS_LIMITS_DEFAULT                                                                     \
    (ChainsLimits)                                                                                \
    {                                                                                             \
        .applications = 1000, .name_bytes = 1U << 20, .all_name_bytes = 8U << 20, .pairs = 16384, \
        .all_pairs = 65536                                                                        \
    }

/* Reduces each history to the limits, and drops what chains_prune() drops as well. A user's history
 * loses the applications that were used in the fewest sessions, then the pairs without a chain
 * whose rarer application was used in the fewest sessions, and then the pairs with the fewest
 * events. In the history of all users, applications and pairs are kept by the best rank that they
 * have in the history of any user. If all histories together hold too many pairs or too many bytes
 * of names, the largest histories are cut to one size. Chains within the limits stay as they are,
 * and are not pruned. As with chains_prune(), ids of names are new. Returns 0, -EBUSY, -EINVAL (an
 * application has no name), or -ENOMEM. On failure *c is valid, and some histories may already be
 * reduced. */
int chains_limit(Chains **c, const ChainsLimits *limits);

/* Prepares chains for merging, if they were made with a wrong clock. Chains whose clock keeps an
 * offset forwards are moved to the wall clock. Chains that are ahead of `realtime` by more than a
 * generation are moved back to `realtime`. The relations between their sums stay. The result is
 * rounded, so it is not exact, unlike merging. Other chains stay as they are. Returns 0 or
 * -EBUSY. */
int chains_settle_clock(Chains *c, usec_t realtime);
