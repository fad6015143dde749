/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Limits each user's part of one stage's record, so that no user crowds out what others open. Root
 * has one share. All other users together have another, and each of these users has a part of it.
 * A third of that share is kept for users who have taken little. Objects beyond a user's share are
 * left out and counted under the user's UID. Pure. */

#include "base/time-util.h"
#include "base/uid.h"
#include "observe/subordinate-uids.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The resources that are divided into shares. */
typedef enum Shared {
    SHARED_EVENTS,       /* in the event log */
    SHARED_OBJECTS,      /* in the event log */
    SHARED_OBJECT_BYTES, /* their names and handles */
    SHARED_SAMPLE_USEC,  /* finding resident pages while the stage runs */
    SHARED_SAMPLE_RANGES,
    SHARED_TOUCHED_USEC, /* finding touched pages while the stage runs */
    SHARED_TOUCHED_RANGES,
    SHARED_FILES, /* in the trace: trace/trace-limits.h */
    SHARED_PATH_BYTES,
    SHARED_NAMES, /* nodes of the path tree */
    SHARED_RANGES,
    SHARED_END_USEC, /* resolving paths and finding resident pages when the stage has ended */
    _SHARED_MAX,
} Shared;

/* The time limit for resolving paths and finding resident pages when a stage has ended, for all
 * users together. On a mechanical disk a cold directory takes 10 ms, so that a thousand files of
 * one user take several seconds. */
#define STAGE_END_USEC (60 * USEC_PER_SEC)

/* The maximum number of rows. Users who find no free row, and subordinate UIDs that belong to no
 * user, share row 0 with unknown users. */
#define USER_SHARES_MAX 512U

typedef struct UserShare {
    uint32_t uid; /* UID_INVALID in row 0, root in row 1 */
    uint64_t used[_SHARED_MAX];
    uint64_t n_events_left_out; /* opens that are not in the log */
    uint64_t n_files_left_out;  /* files and directories of the log that are not in the trace */
    uint64_t n_files_cut;       /* files of the trace whose page ranges are not complete */
} UserShare;

/* Zeroed is valid: nothing is used yet. */
typedef struct UserShares {
    UserShare users[USER_SHARES_MAX];
    size_t n;
    uint64_t used_root[_SHARED_MAX], used_others[_SHARED_MAX];
    uint16_t last; /* the row that was found last */
    /* Maps subordinate UIDs to their users; NULL: no UID is a subordinate one. Borrowed. */
    SubordinateUids *subordinate;
} UserShares;

/* Returns the row of that user, or of the user to whom the subordinate UID belongs. A missing row
 * is added if there is room; if there is none, row 0 is returned. The row of a user never changes.
 */
uint16_t user_shares_row(UserShares *s, uint32_t uid);

/* If the user may take this amount, charges the user for it and returns true; otherwise returns
 * false. */
bool user_shares_try_charge(UserShares *s, uint16_t row, Shared what, uint64_t amount);

/* Returns how much more the user may take. */
uint64_t user_shares_left(const UserShares *s, uint16_t row, Shared what);

/* Charges the user for the amount used, even beyond the share. */
void user_shares_charge(UserShares *s, uint16_t row, Shared what, uint64_t amount);
