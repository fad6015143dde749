/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides the order in which the objects of a stage are added to its trace, since not all may fit.
 * Pure.
 */

#include "observe/processes.h"
#include "record/stage-record.h"

typedef struct StageObject {
    uint32_t object; /* of the event log */
    uint16_t user;   /* row of the shares to which it is charged */
    bool opened;     /* false: a process of the stage ran it, but nobody opened it in the stage */
} StageObject;

/* Lists the objects that were opened, or that a run of an application refers to. Users whom the
 * stage leaves out (stage_record_leaves_out()) do not count. Objects that are likely to be needed
 * again come first:
 *
 * - An object that root opened or ran is charged to root. Any other object is listed once for each
 *   user who opened or ran it, because it belongs in the trace if one of these users has room for
 *   it. Otherwise a user who has used up a share could keep out the files of others by opening them
 *   first. The caller adds an object only once.
 * - Among the objects of one user, executed programs and objects that several runs of the user's
 *   applications opened come first. The others follow in the order of their first open.
 * - Users take turns, so that what they share (the time, and the total size of the trace) is
 *   divided evenly. Root gets four places in each turn, because it represents the whole system.
 *
 * The caller frees *ret. Returns 0 or -ENOMEM. */
int stage_select(StageRecord *s, const ProcessRun *runs, size_t n_runs, StageObject **ret,
                 size_t *ret_n);
