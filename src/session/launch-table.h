/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides which starts of applications are replayed (docs/flows.md). Pure.
 *
 * At most LAUNCH_SETS_MAX sets are read at once. One more start stops the oldest set of the user
 * who has the most sets. The last reads of a stopped set may still be under way, and the set keeps
 * its slot until they have ended. If no slot is free, the new start is not replayed. No start waits
 * in a queue. A user has at most LAUNCH_USER_SLOTS slots, so the starts of one user alone cannot
 * take all slots. Further executions of an application within LAUNCH_AGAIN_USEC belong to the same
 * start.
 *
 * A process that a starting application creates is a helper of the start. The set of the start
 * contains what its helpers read, so the sets of the helpers are not read. For example, gimp starts
 * a hundred programs, whose sets would compete with its own. */

#include "base/macros.h"
#include "base/time-util.h"

#define LAUNCH_SETS_MAX   4U
#define LAUNCH_SLOTS      (2 * LAUNCH_SETS_MAX)
#define LAUNCH_USER_SLOTS 6U
#define LAUNCH_RECENT_MAX 64U
#define LAUNCH_READ_MAX   64U
#define LAUNCH_PASSED_MAX 64U
#define LAUNCH_AGAIN_USEC (2 * USEC_PER_SEC)

/* A start has ended if its processes have executed no program for LAUNCH_HELPER_GAP_USEC, and
 * after LAUNCH_HELPER_MAX_USEC at the latest. What its processes execute later are starts of their
 * own: a terminal starts what its user types. */
#define LAUNCH_HELPER_GAP_USEC (10 * USEC_PER_SEC)
#define LAUNCH_HELPER_MAX_USEC (30 * USEC_PER_SEC)

/* How many ancestors of a process are looked up. */
#define LAUNCH_ANCESTORS_MAX 8U

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
        uint32_t pid;  /* the process that executed the application */
        usec_t begun;  /* the start */
        usec_t latest; /* the latest execution of the start, also by a helper; 0: unused */
    } recent[LAUNCH_RECENT_MAX];
    LaunchKey read[LAUNCH_READ_MAX]; /* a ring; an entry is used if its application is not 0 */
    size_t next_read;
    struct {
        LaunchKey key;
        usec_t at;
    } passed[LAUNCH_PASSED_MAX]; /* a ring: executions that began no start */
    size_t next_passed;
} LaunchTable;

/* Returns true if the execution at `now` needs no examination. Either it belongs to a start of the
 * application whose latest execution was noted less than LAUNCH_AGAIN_USEC ago, or the application
 * was passed over in that time. Examining an execution reads a pack, and a user can execute a
 * program a thousand times in a second. */
bool launch_table_repeats(LaunchTable *t, LaunchKey key, usec_t now);

/* Notes an execution at `now` (above 0) that began no start, although the application has a set. */
void launch_table_pass(LaunchTable *t, LaunchKey key, usec_t now);

/* Notes an execution at `now` (above 0) by the process `pids[0]`. The other n - 1 numbers are its
 * ancestors, the parent first; n is at least 1. Returns false if the execution belongs to a start
 * that was noted before. */
bool launch_table_note(LaunchTable *t, LaunchKey key, const uint32_t *pids, size_t n, usec_t now);

/* Takes a slot for that user. Returns its number, or -1 if no slot is free or the user already has
 * LAUNCH_USER_SLOTS. *ret_stop is the number of a slot whose set must be stopped now, or -1. */
int launch_table_begin(LaunchTable *t, uint32_t uid, usec_t now, int *ret_stop);

/* Frees the slot. To be called when all its reads have ended. */
void launch_table_end(LaunchTable *t, int slot);

/* Notes that the set was read to its end. Replaces the set that was noted first if there are
 * LAUNCH_READ_MAX. */
void launch_table_note_read(LaunchTable *t, LaunchKey key);

/* Returns true if launch_table_note_read() has noted the set. All of such a set was in memory, so
 * samples show whether it still is. Samples of another set do not show this: running programs keep
 * most of it in memory, but not what only this application uses. */
bool launch_table_was_read(const LaunchTable *t, LaunchKey key);

/* Returns true if a set of that size may be read: half of the available memory holds it, and tasks
 * wait for memory at most `maximum_pressure` percent of the time. */
bool launch_fits(uint64_t bytes, uint64_t available_bytes, double pressure,
                 double maximum_pressure);
