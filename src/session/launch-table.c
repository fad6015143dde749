/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "session/launch-table.h"

static bool is_same(LaunchKey a, LaunchKey b)
{
    return a.uid == b.uid && a.application == b.application;
}

bool launch_table_repeats(LaunchTable *t, LaunchKey key, usec_t now)
{
    for (size_t i = 0; i < LAUNCH_RECENT_MAX; i++)
        if (t->recent[i].latest > 0 && is_same(t->recent[i].key, key) &&
            now - t->recent[i].latest < LAUNCH_AGAIN_USEC) {
            t->recent[i].latest = now;
            return true;
        }
    for (size_t i = 0; i < LAUNCH_PASSED_MAX; i++)
        if (t->passed[i].at > 0 && is_same(t->passed[i].key, key) &&
            now - t->passed[i].at < LAUNCH_AGAIN_USEC)
            return true;
    return false;
}

void launch_table_pass(LaunchTable *t, LaunchKey key, usec_t now)
{
    t->passed[t->next_passed].key = key;
    t->passed[t->next_passed].at = now;
    t->next_passed = (t->next_passed + 1) % LAUNCH_PASSED_MAX;
}

/* Returns true if one of the processes began a start of that user which has not ended. Prolongs
 * this start. */
static bool note_helper(LaunchTable *t, uint32_t uid, const uint32_t *pids, size_t n, usec_t now)
{
    for (size_t i = 0; i < LAUNCH_RECENT_MAX; i++) {
        if (t->recent[i].latest == 0 || t->recent[i].key.uid != uid ||
            now - t->recent[i].latest > LAUNCH_HELPER_GAP_USEC ||
            now - t->recent[i].begun > LAUNCH_HELPER_MAX_USEC)
            continue;
        for (size_t k = 0; k < n; k++)
            if (pids[k] == t->recent[i].pid) {
                t->recent[i].latest = now;
                return true;
            }
    }
    return false;
}

/* Returns how many starts of the user are noted. */
static unsigned count_recent(const LaunchTable *t, uint32_t uid)
{
    unsigned n = 0;

    for (size_t i = 0; i < LAUNCH_RECENT_MAX; i++)
        n += t->recent[i].latest > 0 && t->recent[i].key.uid == uid;
    return n;
}

/* Returns a free entry. If there is none, returns the oldest start of the user who has the most
 * starts. The new start of `uid` is counted, too. */
static size_t choose_entry(const LaunchTable *t, uint32_t uid)
{
    size_t entry = 0;
    unsigned most = 0;

    for (size_t i = 0; i < LAUNCH_RECENT_MAX; i++) {
        unsigned n;

        if (t->recent[i].latest == 0)
            return i;
        n = count_recent(t, t->recent[i].key.uid) + (t->recent[i].key.uid == uid);
        if (n > most || (n == most && t->recent[i].latest < t->recent[entry].latest)) {
            most = n;
            entry = i;
        }
    }
    return entry;
}

bool launch_table_note(LaunchTable *t, LaunchKey key, const uint32_t *pids, size_t n, usec_t now)
{
    size_t entry = LAUNCH_RECENT_MAX;

    for (size_t i = 0; i < LAUNCH_RECENT_MAX && entry == LAUNCH_RECENT_MAX; i++)
        if (t->recent[i].latest > 0 && t->recent[i].key.uid == key.uid &&
            t->recent[i].key.application == key.application) {
            if (now - t->recent[i].latest < LAUNCH_AGAIN_USEC) {
                t->recent[i].latest = now;
                return false;
            }
            entry = i;
        }
    if (entry == LAUNCH_RECENT_MAX)
        entry = choose_entry(t, key.uid);
    if (note_helper(t, key.uid, pids, n, now))
        return false;
    t->recent[entry].key = key;
    t->recent[entry].pid = pids[0];
    t->recent[entry].begun = t->recent[entry].latest = now;
    return true;
}

/* Counts the user's sets that are being read or, if `reading` is false, all slots of the user. */
static unsigned count_slots(const LaunchTable *t, uint32_t uid, bool reading)
{
    unsigned n = 0;

    for (unsigned i = 0; i < LAUNCH_SLOTS; i++)
        n += t->slots[i].state != LAUNCH_FREE && t->slots[i].uid == uid &&
             (!reading || t->slots[i].state == LAUNCH_READING);
    return n;
}

/* Returns the slot of the oldest set of the user who has the most sets. The new set of `uid` is
 * counted, too. */
static int choose_victim(const LaunchTable *t, uint32_t uid)
{
    unsigned most = 0;
    int victim = -1;

    for (int i = 0; i < (int)LAUNCH_SLOTS; i++) {
        const LaunchSlot *s = &t->slots[i];
        unsigned n;

        if (s->state != LAUNCH_READING)
            continue;
        n = count_slots(t, s->uid, true) + (s->uid == uid);
        if (n > most || (n == most && s->since < t->slots[victim].since)) {
            most = n;
            victim = i;
        }
    }
    return victim;
}

int launch_table_begin(LaunchTable *t, uint32_t uid, usec_t now, int *ret_stop)
{
    unsigned n_reading = 0;
    int slot = -1;

    *ret_stop = -1;
    for (int i = (int)LAUNCH_SLOTS - 1; i >= 0; i--) {
        slot = t->slots[i].state == LAUNCH_FREE ? i : slot;
        n_reading += t->slots[i].state == LAUNCH_READING;
    }
    if (slot < 0 || count_slots(t, uid, false) >= LAUNCH_USER_SLOTS)
        return -1;
    if (n_reading >= LAUNCH_SETS_MAX) {
        *ret_stop = choose_victim(t, uid);
        t->slots[*ret_stop].state = LAUNCH_STOPPING;
    }
    t->slots[slot] = (LaunchSlot){LAUNCH_READING, now, uid};
    return slot;
}

void launch_table_end(LaunchTable *t, int slot)
{
    t->slots[slot] = (LaunchSlot){0};
}

bool launch_table_was_read(const LaunchTable *t, LaunchKey key)
{
    for (size_t i = 0; i < LAUNCH_READ_MAX; i++)
        if (t->read[i].application == key.application && t->read[i].uid == key.uid)
            return key.application != 0;
    return false;
}

void launch_table_note_read(LaunchTable *t, LaunchKey key)
{
    if (launch_table_was_read(t, key))
        return;
    t->read[t->next_read] = key;
    t->next_read = (t->next_read + 1) % LAUNCH_READ_MAX;
}

bool launch_fits(uint64_t bytes, uint64_t available_bytes, double pressure, double maximum_pressure)
{
    return bytes <= available_bytes / 2 && pressure <= maximum_pressure;
}
