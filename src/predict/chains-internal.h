/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "predict/chains.h"

/* True if a history learns from a session that has not ended. */
static inline bool chains_busy(const Chains *c)
{
    return c->session.active && c->session.n_histories > 0;
}

/* Replaces every sum by f(sum, argument). */
void chains_each_sum(Chains *c, DecayedSum (*f)(DecayedSum sum, uint64_t argument),
                     uint64_t argument);
