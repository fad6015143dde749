/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides which starts of applications are replayed (docs/flows.md). Pure.
 *
 * At most LAUNCH_SETS_MAX sets are read at once. One more start stops the oldest set of the user
 * who has the most sets. The last reads of a stopped set may still be under way, and the set keeps
 * its slot until they have ended. If no slot is free, the new start is not replayed. No start waits
 * in a queue. A user has at most LAUNCH_USER_SLOTS slots, so the starts of one user alone cannot
 * take all slots. Further executions of an application within LAUNCH_AGAIN_USEC belong to the same
 * start. */

#include "base/macros.h"
#include "base/time-util.h"

#define LAUNCH_SETS_MAX   4U
#define LAUNCH_SLOTS      (2 * LAUNCH_SETS_MAX)
#define LAUNCH_USER_SLOTS 6U
#define LAUNCH_RECENT_MAX 64U
#define LAUNCH_AGAIN_USEC (2 * USEC_PER_SEC)

/* Identifies an application that a user starts. */
typedef struct LaunchKey {
    uint32_t uid;
    uint64_t application; /* launch_pack_hash() of its path (state/launch-packs.h) */
} LaunchKey;

typedef enum LaunchState {
    LAUNCH_FREE,
    LAUNCH_READING,
    LAUNCH_STOPPING, /* its remaining reads are under way */
} LaunchState;

typedef struct LaunchSlot {
    LaunchState state;
    usec_t since;
    uint32_t uid;
} LaunchSlot;

/* Valid if zeroed. */
typedef struct LaunchTable {
    LaunchSlot slots[LAUNCH_SLOTS];
    struct {
        LaunchKey key;
        usec_t at; /* 0: unused */
    } recent[LAUNCH_RECENT_MAX];
} LaunchTable;

/* Notes an execution at `now` (above 0). Returns false if it belongs to a start that was noted
 * before. */
bool launch_table_note(LaunchTable *t, LaunchKey key, usec_t now);

/* Takes a slot for that user. Returns its number, or -1 if no slot is free or the user already has
 * LAUNCH_USER_SLOTS. *ret_stop is the number of a slot whose set must be stopped now, or -1. */
int launch_table_begin(LaunchTable *t, uint32_t uid, usec_t now, int *ret_stop);

/* Frees the slot. To be called when all its reads have ended. */
void launch_table_end(LaunchTable *t, int slot);

/* Returns true if a set of that size may be read: half of the available memory holds it, and tasks
 * wait for memory at most `maximum_pressure` percent of the time. */
bool launch_fits(uint64_t bytes, uint64_t available_bytes, double pressure,
                 double maximum_pressure);
