/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "session/launch-log.h"

#include "base/uid.h"

void launch_log_add(LaunchLog *l, const LaunchReplay *r)
{
    l->items[l->n++ % LAUNCH_LOG_MAX] = *r;
}

const LaunchReplay *launch_log_find(const LaunchLog *l, LaunchKey key, usec_t from, usec_t to)
{
    const LaunchReplay *first = NULL;

    for (size_t i = 0; i < MIN(l->n, (size_t)LAUNCH_LOG_MAX); i++) {
        const LaunchReplay *r = &l->items[i];

        if (r->key.application == key.application && r->begin >= from && r->begin <= to &&
            (key.uid == UID_INVALID || r->key.uid == key.uid) &&
            (!first || r->begin < first->begin))
            first = r;
    }
    return first;
}
