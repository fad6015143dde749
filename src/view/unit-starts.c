/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/unit-starts.h"

#include "base/clock.h"

#include <fcntl.h>
#include <string.h>
#include <systemd/sd-journal.h>

/* The messages of systemd (sd-messages.h): a start begins, has succeeded, or has failed. */
#define MESSAGE_STARTING "7d4958e842da4a758f6c1cdc7b36dcc5"
#define MESSAGE_STARTED  "39f53479d3a045ac8e11786248231fbf"
#define MESSAGE_FAILED   "be02cf6855d2428ba40df7e9d022f03d"

#define UNITS_MAX     1000U
#define UNIT_NAME_MAX 256U

typedef struct UnitStart {
    char name[UNIT_NAME_MAX];
    usec_t begin, end; /* since the start of the stage; end == USEC_INFINITY: not ended */
} UnitStart;

typedef struct UnitStarts {
    UnitStart *items;
    size_t n, allocated;
} UnitStarts;

static void unit_starts_done(UnitStarts *u)
{
    free(u->items);
}

static int add_match(sd_journal *j, const char *key, const char *value)
{
    char match[UNIT_NAME_MAX];

    snprintf(match, sizeof(match), "%s=%s", key, value);
    return sd_journal_add_match(j, match, 0);
}

/* journald itself adds the fields whose names begin with "_", so no other process can send messages
 * that match. */
static int add_matches(sd_journal *j, const Trace *t)
{
    char uid[16];

    CHECK(add_match(j, "_BOOT_ID", t->boot_id));
    CHECK(add_match(j, "MESSAGE_ID", MESSAGE_STARTING));
    CHECK(add_match(j, "MESSAGE_ID", MESSAGE_STARTED));
    CHECK(add_match(j, "MESSAGE_ID", MESSAGE_FAILED));
    if (t->stage == STAGE_BOOT)
        return add_match(j, "_PID", "1");
    snprintf(uid, sizeof(uid), "%u", t->uid);
    CHECK(add_match(j, "_UID", uid));
    return add_match(j, "_SYSTEMD_USER_UNIT", "init.scope");
}

static int open_journal(const Context *c, sd_journal **ret)
{
    if (c->system_fd == AT_FDCWD)
        return sd_journal_open(ret, SD_JOURNAL_LOCAL_ONLY);
    return sd_journal_open_directory_fd(ret, c->system_fd, SD_JOURNAL_OS_ROOT);
}

/* Copies a field of the current entry. Returns false if the field is missing or too long. */
static bool read_field(sd_journal *j, const char *key, char *buf, size_t size)
{
    size_t l = strlen(key) + 1, n;
    const void *data;

    if (sd_journal_get_data(j, key, &data, &n) < 0 || n <= l || n - l >= size)
        return false;
    memcpy(buf, (const char *)data + l, n - l);
    buf[n - l] = 0;
    return strlen(buf) == n - l;
}

/* Computes the time of the current entry since the start of the stage. In a boot the monotonic
 * clock is used, because the first correction of the machine's time does not change it. In a login
 * or a session the wall clock is used, because the monotonic clock stands still in suspend. Returns
 * false if the entry has no time or is older than the stage. */
static bool read_time(sd_journal *j, const Trace *t, usec_t *ret)
{
    usec_t start = t->stage == STAGE_BOOT ? t->start_boottime : t->start_realtime;
    sd_id128_t boot;
    uint64_t at;

    if ((t->stage == STAGE_BOOT ? sd_journal_get_monotonic_usec(j, &at, &boot)
                                : sd_journal_get_realtime_usec(j, &at)) < 0 ||
        at < start)
        return false;
    *ret = at - start;
    return true;
}

static UnitStart *find_unit(UnitStarts *u, const char *name)
{
    for (size_t i = u->n; i-- > 0;)
        if (strcmp(u->items[i].name, name) == 0)
            return &u->items[i];
    return NULL;
}

static int add_entry(sd_journal *j, const Trace *t, UnitStarts *units)
{
    char name[UNIT_NAME_MAX], message[64];
    UnitStart *u;
    usec_t at;

    if (!read_field(j, t->stage == STAGE_BOOT ? "UNIT" : "USER_UNIT", name, sizeof(name)) ||
        !read_field(j, "MESSAGE_ID", message, sizeof(message)) || !read_time(j, t, &at) ||
        at > t->duration)
        return 0;
    u = find_unit(units, name);
    if (u) {
        u->end = u->end == USEC_INFINITY ? at : u->end;
        return 0;
    }
    if (units->n == UNITS_MAX)
        return 0;
    CHECK(grow_array(&units->items, &units->allocated, units->n + 1, sizeof(*u)));
    u = &units->items[units->n++];
    *u = (UnitStart){.begin = at,
                     .end = strcmp(message, MESSAGE_STARTING) == 0 ? USEC_INFINITY : at};
    memcpy(u->name, name, sizeof(name));
    return 0;
}

/* Adds the starts to the timeline, and returns their number or -ENOMEM. The weight is the time that
 * a start took within the trace, in microseconds. */
static int add_spans(UnitStarts *units, const Trace *t, Timeline *timeline)
{
    for (size_t i = 0; i < units->n; i++) {
        UnitStart *u = &units->items[i];

        CHECK(timeline_add_unit(timeline,
                                &(TimelineSpan){.name = u->name,
                                                .start = u->begin,
                                                .end = u->end,
                                                .weight = MIN(u->end, t->duration) - u->begin}));
    }
    return (int)units->n;
}

int unit_starts_add(const Context *c, const Trace *t, usec_t deadline, Timeline *timeline)
{
    _cleanup_(unit_starts_done) UnitStarts units = {0};
    _cleanup_(sd_journal_closep) sd_journal *j = NULL;
    int r, late = 0;

    if (!*t->boot_id || (t->stage != STAGE_BOOT && t->uid == UID_INVALID))
        return 0;
    CHECK(open_journal(c, &j));
    CHECK(add_matches(j, t));
    CHECK(sd_journal_seek_head(j));
    while (late == 0 && (r = sd_journal_next(j)) > 0) {
        CHECK(add_entry(j, t, &units));
        late = clock_now(CLOCK_MONOTONIC) > deadline ? -ETIMEDOUT : 0;
    }
    if (late == 0 && r < 0)
        return r;
    r = add_spans(&units, t, timeline);
    return r < 0 || late == 0 ? r : late;
}
