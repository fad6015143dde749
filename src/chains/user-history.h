/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The observations of one user or of everybody: applications, the pairs of them that co-occurred,
 * and the sums of each chain. chains.c adds to the sums; this file contains the data structure
 * alone. Pure.
 *
 * A history numbers its applications from 0 on. Application CHAINS_BEGIN stands for the beginnings
 * of its sessions. Two applications that have co-occurred (chains.h) are neighbours. From the
 * second co-occurrence on they have a pair, which holds the sums of their chain. */

#include "base/uid.h"
#include "chains/decayed-sum.h"
#include "chains/expert-weights.h"
#include "chains/session-log.h"

#define CHAINS_NONE      UINT32_MAX /* no application, no id, no pair */
#define CHAINS_BEGIN     0U         /* application 0 of each history */
#define CHAINS_IDS_MAX   (1U << 20)
#define CHAINS_PAIRS_MAX (1U << 20) /* pairs of neighbours in one history */

/* The ages at which sessions end are counted in classes, because the rate at which sessions end
 * depends on their age. The bounds are 5, 10, 20, 40, … 81920 seconds. */
#define CHAINS_AGES 16

typedef struct Neighbour {
    uint32_t other; /* application */
    uint32_t pair;  /* CHAINS_NONE: they have co-occurred once */
} Neighbour;

/* Sums of times (decayed_sum_of_time()) and of events. Each observation has the weight of its
 * moment. */
typedef struct ChainsApplication {
    uint32_t id; /* the caller's number; CHAINS_NONE for CHAINS_BEGIN */
    DecayedSum starts, exits, on;
    DecayedSum sessions;   /* sessions in which it started */
    DecayedSum last;       /* time during which it was the application that had started last */
    DecayedSum next_self;  /* how often it was the next to start after a start of its own */
    DecayedSum last_self;  /* part of `last` in which it ran, so that it could not start */
    Neighbour *neighbours; /* sorted by `other` */
    uint32_t n_neighbours, allocated_neighbours;
} ChainsApplication;

/* The chain of two applications a < b. Index [0] stands for a, [1] for b. */
typedef struct ChainsPair {
    uint32_t a, b;
    uint32_t co_occurrences;
    DecayedSum both;      /* time during which both ran */
    DecayedSum starts[2]; /* starts of the one while the other ran */
    DecayedSum exits[2];
    DecayedSum next[2]; /* how often the one was the next to start after the other */
    DecayedSum last[2]; /* time during which the other had started last and the one ran */
    /* The sums of the history and of the applications when the chain began. */
    DecayedSum before_time, before_on[2], before_starts[2], before_exits[2];
    usec_t since; /* when the chain began, if it began in the present session */
} ChainsPair;

typedef struct UserHistory {
    uint32_t user; /* uid, or UID_INVALID for everybody */
    DecayedSum time, sessions;
    DecayedSum age_time[CHAINS_AGES];  /* time that sessions spent at that age */
    DecayedSum age_ended[CHAINS_AGES]; /* sessions that ended at that age */
    ExpertWeights weights;
    SessionLog log;
    ChainsApplication *applications;
    size_t n_applications, allocated_applications;
    uint32_t *index; /* id -> application */
    size_t allocated_index;
    ChainsPair *pairs;
    size_t n_pairs, allocated_pairs;
    size_t n_co_occurring; /* pairs of neighbours, with a chain or without */
} UserHistory;

/* Makes a history that contains only CHAINS_BEGIN. Returns 0 or -ENOMEM. */
int user_history_new(uint32_t user, UserHistory **ret);
UserHistory *user_history_free(UserHistory *h);

/* Copies a history. Returns 0 or -ENOMEM. */
int user_history_copy(const UserHistory *h, UserHistory **ret);

/* Returns the application with that id, or CHAINS_NONE if there is none. If the id is CHAINS_NONE,
 * returns CHAINS_BEGIN. */
static inline uint32_t user_history_find(const UserHistory *h, uint32_t id)
{
    if (id == CHAINS_NONE)
        return CHAINS_BEGIN;
    return id < h->allocated_index ? h->index[id] : CHAINS_NONE;
}

/* Finds or adds the application with that id. Returns 0, -E2BIG (id out of range), -ENOMEM. */
int user_history_add(UserHistory *h, uint32_t id, uint32_t *ret);

/* Return the entry of application a for its neighbour b, and the chain of the two. Return NULL if
 * there is none, if a or b is out of range, or if a and b are equal. Searches for one application
 * `a` after another are fast: its entries stay in the processor's cache. */
Neighbour *user_history_find_neighbour(const UserHistory *h, uint32_t a, uint32_t b);
ChainsPair *user_history_find_pair(const UserHistory *h, uint32_t a, uint32_t b);

/* Makes two applications neighbours, which they must not be yet. Returns 0, -E2BIG
 * (CHAINS_PAIRS_MAX), -ENOMEM. */
int user_history_add_neighbours(UserHistory *h, uint32_t a, uint32_t b);

/* Adds an empty chain of two applications that have none, and makes them neighbours. Pointers to
 * other pairs become invalid. Returns 0, -E2BIG, -ENOMEM. */
int user_history_add_pair(UserHistory *h, uint32_t x, uint32_t y, ChainsPair **ret);

/* List the sums of a history, an application and a pair, in the order of the JSON format.
 * `swapped`: in the order of the pair (b, a). */
#define CHAINS_HISTORY_SUMS     (2 + 2 * CHAINS_AGES + EXPERT_SUMS)
#define CHAINS_APPLICATION_SUMS 7
#define CHAINS_PAIR_SUMS        16
void chains_history_sums(UserHistory *h, DecayedSum *ret[static CHAINS_HISTORY_SUMS]);
void chains_application_sums(ChainsApplication *a, DecayedSum *ret[static CHAINS_APPLICATION_SUMS]);
void chains_pair_sums(ChainsPair *p, bool swapped, DecayedSum *ret[static CHAINS_PAIR_SUMS]);

/* Replaces every sum by f(sum, argument). */
void user_history_each_sum(UserHistory *h, DecayedSum (*f)(DecayedSum sum, uint64_t argument),
                           uint64_t argument);

/* Converts the sums of times and credits of format versions before 4, which are larger by the
 * factor 2^DECAYED_SUM_BITS. */
void user_history_shorten_sums(UserHistory *h);

/* Returns the size of the history in memory, in bytes. */
size_t user_history_size(const UserHistory *h);
