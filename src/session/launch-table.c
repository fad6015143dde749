/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "session/launch-table.h"

bool launch_table_note(LaunchTable *t, LaunchKey key, usec_t now)
{
    size_t oldest = 0;

    for (size_t i = 0; i < LAUNCH_RECENT_MAX; i++) {
        if (t->recent[i].at > 0 && t->recent[i].key.uid == key.uid &&
            t->recent[i].key.application == key.application) {
            bool again = now - t->recent[i].at < LAUNCH_AGAIN_USEC;

            t->recent[i].at = now;
            return !again;
        }
        if (t->recent[i].at < t->recent[oldest].at)
            oldest = i;
    }
    t->recent[oldest].key = key;
    t->recent[oldest].at = now;
    return true;
}

int launch_table_begin(LaunchTable *t, usec_t now, int *ret_stop)
{
    int slot = -1, oldest = -1;
    unsigned n_reading = 0;

    *ret_stop = -1;
    for (int i = 0; i < (int)LAUNCH_SLOTS; i++) {
        const LaunchSlot *s = &t->slots[i];

        if (s->state == LAUNCH_FREE && slot < 0)
            slot = i;
        if (s->state != LAUNCH_READING)
            continue;
        n_reading++;
        if (oldest < 0 || s->since < t->slots[oldest].since)
            oldest = i;
    }
    if (slot < 0)
        return -1;
    if (n_reading >= LAUNCH_SETS_MAX) {
        t->slots[oldest].state = LAUNCH_STOPPING;
        *ret_stop = oldest;
    }
    t->slots[slot] = (LaunchSlot){LAUNCH_READING, now};
    return slot;
}

void launch_table_end(LaunchTable *t, int slot)
{
    t->slots[slot] = (LaunchSlot){0};
}

bool launch_fits(uint64_t bytes, uint64_t available_bytes, double pressure, double maximum_pressure)
{
    return bytes <= available_bytes / 2 && pressure <= maximum_pressure;
}
