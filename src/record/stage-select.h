/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides which objects of a stage are added to its trace, and in which order, since not all may
 * fit. Pure. */

#include "record/event-log.h"
#include "record/processes.h"
#include "record/user-shares.h"

/* The users whose accesses belong to a stage. The process connector reports the user of each
 * process, so that with it no other user can put a file of root into the packs of that stage. */
typedef struct StageUsers {
    bool all;     /* every user */
    uint32_t uid; /* if not `all`: root, system accounts and this user; UID_INVALID: no such user */
} StageUsers;

/* Returns the users of a stage of the user `uid`. A boot belongs to no user. A login for which
 * `uid` is UID_INVALID has several users, and belongs to all. In a session, the model learns each
 * user's applications separately, so it belongs to all, too. */
StageUsers stage_users_of(Stage stage, uint32_t uid);

/* Returns true if what this user opens or runs belongs to the stage. An unknown user (UID_INVALID)
 * belongs to every stage: without the connector, processes that end before they are seen have no
 * known user, and in a boot most of them are those of root. */
bool stage_users_include(StageUsers u, uint32_t uid);

/* Like stage_users_include(), for a row of the shares. If all rows are taken, row 0 belongs to no
 * stage of a single user, because any user may be counted there. */
bool stage_users_include_row(StageUsers u, const UserShares *shares, uint16_t row);

typedef struct StageObject {
    uint32_t object; /* of the event log */
    uint16_t user;   /* row of the shares to which it is charged */
    bool opened;     /* false: a process of the stage ran it, but it was opened before the stage */
} StageObject;

/* Lists every object that `users` have opened, or to which one of their runs of an application
 * refers, the likeliest to be needed again first:
 *
 * - An object that root opened or ran is charged to root. Any other object is charged to the first
 *   user who opened it or, if it was not opened, ran it.
 * - Among the objects of one user, executed programs and objects that several runs of applications
 *   opened come first. The others follow in the order of their first open.
 * - Users take turns, so that what they share (the time, and the total size of the trace) is
 *   divided evenly. Root gets four places in each turn, because it represents the whole system.
 *
 * The caller frees *ret. Returns 0 or -ENOMEM. */
int stage_select(const EventLog *log, const ProcessRun *runs, size_t n_runs, StageUsers users,
                 UserShares *shares, StageObject **ret, size_t *ret_n);
