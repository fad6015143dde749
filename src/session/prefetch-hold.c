/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "session/prefetch-hold.h"

#include "base/clock.h"

#include <stdatomic.h>

static _Atomic usec_t held_until;
static _Atomic uint64_t accesses;

void prefetch_hold(usec_t until)
{
    usec_t before = atomic_load(&held_until);

    while (before < until && !atomic_compare_exchange_weak(&held_until, &before, until))
        ;
}

void prefetch_release(usec_t until, usec_t remaining)
{
    atomic_compare_exchange_strong(&held_until, &until, remaining);
}

bool prefetch_is_held(void)
{
    return clock_now(CLOCK_MONOTONIC) < atomic_load(&held_until);
}

void prefetch_note_access(void)
{
    atomic_fetch_add(&accesses, 1);
}

uint64_t prefetch_accesses(void)
{
    return atomic_load(&accesses);
}
