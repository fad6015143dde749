/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides for how long a replay holds the boot. Pure. All instants are CLOCK_MONOTONIC. */

#include "boot/hold.h"
#include "pack/pack.h"

/* The event that ended the time for which a replay held the boot. */
typedef enum HoldEnd {
    HOLD_END_NONE,     /* the replay did not hold the boot, or still holds it */
    HOLD_END_SWEPT,    /* the end of the sweep */
    HOLD_END_PLANNED,  /* the end of the pack's hold time, which is shorter than the sweep */
    HOLD_END_DEADLINE, /* the pack's deadline, or that of the kernel command line */
    HOLD_END_PACK,     /* the pack was not loaded in time (pack-load.h) */
    _HOLD_END_MAX,
} HoldEnd;

typedef struct Hold {
    usec_t from;  /* when the boot began to wait; the deadline counts from here */
    usec_t start; /* when the replay started; the planned hold time counts from here */
    usec_t max;   /* the longest hold, whatever the pack requests: hold_limit() */
    usec_t held;  /* how long headstart-init has held the same boot before; counts towards the
                     deadline and the planned hold time */
} Hold;

/* Returns when the hold ends if the header of the pack is not known by then. */
usec_t hold_unread_until(const Hold *x);

/* Returns when the hold ends at the latest if the pack is replayed with this policy: at x->from,
 * except with `gate`. *ret_end becomes the reason that is reported if the hold ends then. */
usec_t hold_until(const Hold *x, const PackHeader *h, Policy policy, HoldEnd *ret_end);
