/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "observe/user-shares.h"

#include "base/macros.h"
#include "observe/event-log.h"
#include "trace/trace-limits.h"

/* `total` is the limit of all users together. Root alone, and the others together, may each take
 * three quarters of it. `user` is the limit of one user other than root. Such a user who has taken
 * LITTLE_OF(total) may take more only while all users but root together have taken less than half
 * of the total. Several users who flood the recorder therefore leave a quarter to users who have
 * taken little. */
#define LITTLE_OF(total) ((total) / 32)

static const struct {
    uint64_t total, user;
} limits[_SHARED_MAX] = {
        [SHARED_EVENTS] = {EVENT_LOG_EVENTS_MAX, EVENT_LOG_EVENTS_MAX / 4},
        [SHARED_OBJECTS] = {EVENT_LOG_OBJECTS_MAX, EVENT_LOG_OBJECTS_MAX / 4},
        [SHARED_OBJECT_BYTES] = {EVENT_LOG_BYTES_MAX, EVENT_LOG_BYTES_MAX / 4},
        [SHARED_SAMPLE_USEC] = {60 * USEC_PER_SEC, 5 * USEC_PER_SEC},
        [SHARED_SAMPLE_RANGES] = {TRACE_RECORD_RANGES_MAX, TRACE_RECORD_USER_RANGES_MAX},
        [SHARED_TOUCHED_USEC] = {20 * USEC_PER_SEC, 5 * USEC_PER_SEC},
        [SHARED_TOUCHED_RANGES] = {TRACE_RECORD_RANGES_MAX, TRACE_RECORD_USER_RANGES_MAX},
        [SHARED_FILES] = {TRACE_RECORD_FILES_MAX, TRACE_RECORD_USER_FILES_MAX},
        [SHARED_PATH_BYTES] = {TRACE_RECORD_PATH_BYTES_MAX, TRACE_RECORD_USER_PATH_BYTES_MAX},
        [SHARED_NAMES] = {TRACE_RECORD_NAMES_MAX, TRACE_RECORD_USER_NAMES_MAX},
        [SHARED_RANGES] = {TRACE_RECORD_RANGES_MAX, TRACE_RECORD_USER_RANGES_MAX},
        [SHARED_END_USEC] = {STAGE_END_USEC, STAGE_END_USEC / 4},
};

uint16_t user_shares_row(UserShares *s, uint32_t uid)
{
    if (s->n == 0) {
        s->users[0] = (UserShare){.uid = UID_INVALID};
        s->users[1] = (UserShare){.uid = 0};
        s->n = 2;
    }
    if (s->subordinate && subordinate_uid_is_possible(uid))
        uid = subordinate_uids_owner(s->subordinate, uid);
    if (s->users[s->last].uid == uid)
        return s->last;
    for (size_t i = 0; i < s->n; i++)
        if (s->users[i].uid == uid)
            return s->last = (uint16_t)i;
    if (s->n == USER_SHARES_MAX)
        return 0;
    s->users[s->n] = (UserShare){.uid = uid};
    return s->last = (uint16_t)s->n++;
}

uint64_t user_shares_left(const UserShares *s, uint16_t row, Shared what)
{
    const UserShare *u = &s->users[row];
    const uint64_t root = s->used_root[what], others = s->used_others[what];
    const uint64_t total = limits[what].total, side = total / 4 * 3;
    uint64_t used = u->uid == 0 ? root : others, left, little;

    left = MIN(side - MIN(used, side), total - MIN(root + others, total));
    if (u->uid == 0)
        return left;
    little = LITTLE_OF(total) - MIN(u->used[what], LITTLE_OF(total));
    left = MIN(left, MAX(little, total / 2 - MIN(others, total / 2)));
    return MIN(left, limits[what].user - MIN(u->used[what], limits[what].user));
}

void user_shares_charge(UserShares *s, uint16_t row, Shared what, uint64_t amount)
{
    UserShare *u = &s->users[row];

    u->used[what] += amount;
    *(u->uid == 0 ? &s->used_root[what] : &s->used_others[what]) += amount;
}

bool user_shares_try_charge(UserShares *s, uint16_t row, Shared what, uint64_t amount)
{
    if (user_shares_left(s, row, what) < amount)
        return false;
    user_shares_charge(s, row, what, amount);
    return true;
}
