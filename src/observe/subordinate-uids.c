/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "observe/subordinate-uids.h"

#include "base/macros.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void subordinate_uids_done(SubordinateUids *s)
{
    free(s->subuid);
    free(s->passwd);
    *s = (SubordinateUids){0};
}

bool subordinate_uid_is_possible(uint32_t uid)
{
    return uid >= SUBORDINATE_UID_MIN && uid != UID_INVALID;
}

/* Returns the line after the one at `line`, or NULL. */
static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    return end && end[1] ? end + 1 : NULL;
}

/* Returns the UID of the user, or UID_INVALID for an unknown user and for root. */
static uint32_t uid_of(const char *passwd, const char *name, size_t length)
{
    uint64_t uid;

    for (const char *p = passwd; p; p = next_line(p))
        if (strncmp(p, name, length) == 0 && p[length] == ':' &&
            sscanf(p + length + 1, "%*[^:\n]:%" SCNu64, &uid) == 1)
            return uid > 0 && uid < UID_INVALID ? (uint32_t)uid : UID_INVALID;
    return UID_INVALID;
}

/* subuid(5) names a user by the name or by the UID. */
static uint32_t owner_of(const SubordinateUids *s, const char *name, size_t length)
{
    uint64_t uid;
    int n = 0;

    if (sscanf(name, "%" SCNu64 "%n", &uid, &n) == 1 && (size_t)n == length)
        return uid > 0 && uid < UID_INVALID ? (uint32_t)uid : UID_INVALID;
    return uid_of(s->passwd, name, length);
}

static uint32_t keep(SubordinateUids *s, uint32_t first, uint64_t count, uint32_t owner)
{
    s->n_known = s->n_known < SUBORDINATE_KNOWN_MAX ? s->n_known : 0;
    s->known[s->n_known].first = first;
    s->known[s->n_known].count = (uint32_t)MIN(count, (uint64_t)UINT32_MAX);
    s->known[s->n_known++].owner = owner;
    return owner;
}

uint32_t subordinate_uids_owner(SubordinateUids *s, uint32_t uid)
{
    for (size_t i = 0; i < s->n_known; i++)
        if (uid - s->known[i].first < s->known[i].count)
            return s->known[i].owner;
    for (const char *p = s->subuid; p; p = next_line(p)) {
        size_t length = strcspn(p, ":\n");
        uint64_t first, count;

        if (length > 0 && sscanf(p + length, ":%" SCNu64 ":%" SCNu64, &first, &count) == 2 &&
            uid >= first && uid - first < count)
            return keep(s, (uint32_t)first, count, owner_of(s, p, length));
    }
    return keep(s, uid, 1, uid);
}
