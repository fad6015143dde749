/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "session/launch-use.h"

#include <string.h>

void cached_pages_done(CachedPages *p)
{
    range_set_done(&p->resident);
    range_set_done(&p->seen);
}

void launch_use_done(LaunchUse *u)
{
    for (size_t i = 0; i < u->n; i++)
        range_set_done(&u->needs[i].ranges);
    free(u->needs);
    *u = (LaunchUse){0};
}

void launch_uses_done(LaunchUses *u)
{
    for (size_t i = 0; i < u->n; i++)
        launch_use_done(&u->items[i]);
    u->n = 0;
}

int launch_need_compute(const CachedPages *before, const CachedPages *after,
                        const RangeSet *planned, RangeSet *ret)
{
    _cleanup_range_set_ RangeSet read = {0}, reclaimed = {0}, unknown = {0}, needed = {0};
    int r = range_set_subtract(&after->resident, &before->resident, &read);

    if (r >= 0)
        r = range_set_subtract(&after->seen, &before->seen, &reclaimed);
    if (r >= 0)
        r = range_set_intersect(&before->resident, planned, &unknown);
    if (r >= 0)
        r = range_set_union(&read, &reclaimed, &needed);
    return r < 0 ? r : range_set_union(&needed, &unknown, ret);
}

int launch_use_add(LaunchUse *u, const char *uuid, uint64_t inode, RangeSet *ranges)
{
    size_t length = strlen(uuid);
    LaunchNeed *n;

    if (ranges->n == 0)
        return 0;
    if (length >= sizeof(n->uuid))
        return -EINVAL;
    if (ranges->n > LAUNCH_NEED_RANGES_MAX - u->n_ranges)
        return -E2BIG;
    if (grow_array(&u->needs, &u->allocated, u->n + 1, sizeof(*u->needs)) < 0)
        return -ENOMEM;
    n = &u->needs[u->n++];
    *n = (LaunchNeed){.inode = inode, .ranges = *ranges};
    memcpy(n->uuid, uuid, length + 1);
    u->n_ranges += ranges->n;
    *ranges = (RangeSet){0};
    return 0;
}

bool launch_uses_have(const LaunchUses *u, LaunchKey key)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->items[i].key.uid == key.uid && u->items[i].key.application == key.application)
            return true;
    return false;
}
