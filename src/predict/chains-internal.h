/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "base/json-document.h"
#include "predict/chains.h"

UserHistory *user_history_free(UserHistory *h);
int chains_intern(UserHistory *h, uint32_t id, uint32_t *ret);
ChainsPair *chains_find_pair(const UserHistory *h, uint32_t a, uint32_t b);
Neighbour *chains_find_neighbour(const UserHistory *h, uint32_t a, uint32_t b);
int chains_add_neighbours(UserHistory *h, uint32_t a, uint32_t b);
int chains_add_pair(UserHistory *h, uint32_t x, uint32_t y, ChainsPair **ret);

/* f(sum, argument) for every sum. */
void chains_each_sum(Chains *c, DecayedSum (*f)(DecayedSum sum, uint64_t argument),
                     uint64_t argument);
void chains_advance(Chains *c, uint64_t later);
void chains_names_done(Chains *c);

/* The sums of a history, an application and a pair, in the order of the format. */
#define CHAINS_HISTORY_SUMS     (2 + 2 * CHAINS_AGES)
#define CHAINS_APPLICATION_SUMS 7
#define CHAINS_PAIR_SUMS        16
void chains_history_sums(UserHistory *h, DecayedSum *ret[static CHAINS_HISTORY_SUMS]);
void chains_application_sums(ChainsApplication *a, DecayedSum *ret[static CHAINS_APPLICATION_SUMS]);
/* `swapped`: as the pair (b, a). */
void chains_pair_sums(ChainsPair *p, bool swapped, DecayedSum *ret[static CHAINS_PAIR_SUMS]);

/* The members of chains_to_json()'s object, for one that is open; what chains_from_json() does, for
 * an object of a document. */
int chains_write(const Chains *c, JsonWriter *to);
int chains_read(const JsonDocument *d, struct json_object *o, Chains **ret);
