/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "chains/chains.h"

/* Returns true if a history learns from a session that has not ended. */
static inline bool chains_busy(const Chains *c)
{
    return c->session.active && c->session.n_histories > 0;
}

/* The argument `userdata` of chains_compare_applications(). */
typedef struct ChainsOfHistory {
    const Chains *chains;
    const UserHistory *history;
} ChainsOfHistory;

/* Compares two applications of a history by their names, or by their ids if they have none. Session
 * logs are in this order. `userdata` is a ChainsOfHistory. */
int chains_compare_applications(uint32_t a, uint32_t b, const void *userdata);

/* Adds a copy of the sessions of `from` to the log of the history `to` of `c`. Application a of
 * `from` is there[a] in `to`; its starts are left out if there[a] is CHAINS_NONE. Returns 0 or
 * -ENOMEM. */
int chains_add_log(const Chains *c, UserHistory *to, const SessionLog *from, const uint32_t *there);

/* Replaces every sum by f(sum, argument). */
void chains_each_sum(Chains *c, DecayedSum (*f)(DecayedSum sum, uint64_t argument),
                     uint64_t argument);
