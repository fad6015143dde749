/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "measure/launch-record.h"

#include "base/json-util.h"

#include <string.h>

static const char *const replayed_names[_LAUNCH_REPLAYED_MAX] = {
        [LAUNCH_NOT_REPLAYED] = "no",
        [LAUNCH_CONTROL] = "control",
        [LAUNCH_REPLAYED] = "yes",
};

const char *launch_replayed_to_string(LaunchReplayed r)
{
    return (int)r < 0 || r >= _LAUNCH_REPLAYED_MAX ? NULL : replayed_names[r];
}

void launch_records_done(LaunchRecords *l)
{
    free(l->items);
    *l = (LaunchRecords){0};
}

/* --- from a trace ----------------------------------------------------------------------------- */

typedef struct Start {
    uint32_t application;
    usec_t at, latest; /* since the start of the stage */
    uint64_t files;
} Start;

typedef struct Starts {
    Start *items; /* by time */
    size_t n;
    size_t *open; /* application -> 1 + index of its latest start; 0: none */
} Starts;

static void starts_done(Starts *s)
{
    free(s->items);
    free(s->open);
}

static int by_time(const void *a, const void *b)
{
    const Start *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->application > y->application) - (x->application < y->application);
}

static int by_files(const void *a, const void *b)
{
    const Start *x = a, *y = b;

    return x->files != y->files ? (x->files > y->files ? -1 : 1) : by_time(a, b);
}

static int list_starts(const Trace *t, Starts *s)
{
    s->items = calloc(t->n_lifetimes + 1, sizeof(*s->items));
    s->open = calloc(t->n_applications + 1, sizeof(*s->open));
    if (!s->items || !s->open)
        return -ENOMEM;
    /* What started at 0 ran before the session. */
    for (size_t i = 0; i < t->n_lifetimes; i++)
        if (t->lifetimes[i].start > 0)
            s->items[s->n++] = (Start){.application = t->lifetimes[i].application,
                                       .at = t->lifetimes[i].start,
                                       .latest = t->lifetimes[i].start};
    if (s->n > 0)
        qsort(s->items, s->n, sizeof(*s->items), by_time);
    return 0;
}

static bool goes_on(const Start *s, usec_t at)
{
    return at - s->latest <= LAUNCH_GAP_USEC && at - s->at <= LAUNCH_MAX_USEC;
}

/* Returns the start of the application that is not over at that time, or NULL. */
static Start *find_open(const Starts *s, uint32_t application, usec_t at)
{
    Start *x = s->open[application] > 0 ? &s->items[s->open[application] - 1] : NULL;

    return x && goes_on(x, at) ? x : NULL;
}

/* Counts the opens of each start. If an application starts a further process before its start is
 * over, that process belongs to the same start. */
static void count_files(const Trace *t, Starts *s)
{
    size_t next = 0;

    for (size_t i = 0; i < t->n_accesses; i++) {
        const TraceAccess *a = &t->accesses[i];
        Start *x;

        for (; next < s->n && s->items[next].at <= a->at; next++)
            if (!find_open(s, s->items[next].application, s->items[next].at))
                s->open[s->items[next].application] = next + 1;
        x = a->application == TRACE_NONE ? NULL : find_open(s, a->application, a->at);
        if (!x)
            continue;
        x->latest = a->at;
        x->files++;
    }
}

static int add_record(const Trace *t, const Start *s, LaunchRecords *l)
{
    LaunchRecord r = {.uid = t->uid,
                      .start_realtime_usec = t->start_realtime + s->at,
                      .took_usec = s->latest - s->at,
                      .files = s->files,
                      .policy = _POLICY_INVALID,
                      .usage = pack_usage_empty(),
                      .trace_application = s->application};

    if (json_is_utf8(t->kernel))
        snprintf(r.kernel, sizeof(r.kernel), "%s", t->kernel);
    snprintf(r.boot_id, sizeof(r.boot_id), "%s", t->boot_id);
    if (trace_format_path(t, t->files[t->applications[s->application].file].path, r.application,
                          sizeof(r.application)) < 0 ||
        !json_is_utf8(r.application))
        return 0;
    CHECK(grow_array(&l->items, &l->allocated, l->n + 1, sizeof(r)));
    l->items[l->n++] = r;
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const LaunchRecord *x = a, *y = b;

    return (x->start_realtime_usec > y->start_realtime_usec) -
           (x->start_realtime_usec < y->start_realtime_usec);
}

int launch_records_from_trace(const Trace *t, LaunchRecords *ret)
{
    _cleanup_launch_records_ LaunchRecords l = {0};
    _cleanup_(starts_done) Starts s = {0};

    if (t->stage == STAGE_SESSION) {
        CHECK(list_starts(t, &s));
        count_files(t, &s);
    }
    if (s.n > 0)
        qsort(s.items, s.n, sizeof(*s.items), by_files);
    for (size_t i = 0; i < MIN(s.n, (size_t)LAUNCHES_PER_SESSION); i++)
        if (s.items[i].files >= LAUNCH_FILES_MIN && s.items[i].latest > s.items[i].at)
            CHECK(add_record(t, &s.items[i], &l));
    if (l.n > 0)
        qsort(l.items, l.n, sizeof(*l.items), by_start);
    *ret = l;
    l = (LaunchRecords){0};
    return 0;
}

/* --- lines ------------------------------------------------------------------------------------ */

int launch_record_to_line(const LaunchRecord *l, char **ret, size_t *ret_size)
{
    _cleanup_json_writer_ JsonWriter w = {.compact = true};

    json_writer_add_u64(&w, "version", 1);
    json_writer_add_string(&w, "application", l->application);
    if (l->uid != UID_INVALID)
        json_writer_add_u64(&w, "uid", l->uid);
    json_writer_add_u64(&w, "start_realtime_usec", l->start_realtime_usec);
    json_writer_add_u64(&w, "took_usec", l->took_usec);
    json_writer_add_u64(&w, "files", l->files);
    json_writer_add_string(&w, "replayed", replayed_names[l->replayed]);
    if (*l->boot_id)
        json_writer_add_string(&w, "boot_id", l->boot_id);
    if (l->packages_usec > 0 && l->packages_usec != USEC_INFINITY)
        json_writer_add_u64(&w, "packages_usec", l->packages_usec);
    if (*l->kernel)
        json_writer_add_string(&w, "kernel", l->kernel);
    if ((int)l->policy >= 0)
        json_writer_add_string(&w, "policy", policy_to_string(l->policy));
    if (l->usage.source != USAGE_NONE)
        pack_usage_write(&l->usage, &w);
    if (l->replay_end_usec > 0) {
        json_writer_add_u64(&w, "replay_begin_usec", l->replay_begin_usec);
        json_writer_add_u64(&w, "replay_end_usec", l->replay_end_usec);
        json_writer_add_u64(&w, "replay_bytes", l->replay_bytes);
    }
    return json_writer_finish_line(&w, ret, ret_size);
}

static int read_replay(json_object *o, LaunchRecord *l)
{
    uint64_t begin, end, bytes;

    if (json_get_u64(o, "replay_end_usec", UINT64_MAX / 4, &end) < 0 || end == 0 ||
        json_get_u64(o, "replay_begin_usec", end, &begin) < 0 ||
        json_get_u64(o, "replay_bytes", UINT64_MAX - 1, &bytes) < 0)
        return -EBADMSG;
    l->replay_begin_usec = begin;
    l->replay_end_usec = end;
    l->replay_bytes = bytes;
    return 0;
}

/* Reads the members that older versions did not write. */
static int read_newer_members(json_object *o, LaunchRecord *l)
{
    const char *word;

    if (json_get_string(o, "boot_id", &word) >= 0) {
        if (strlen(word) >= sizeof(l->boot_id))
            return -EBADMSG;
        memcpy(l->boot_id, word, strlen(word) + 1);
    }
    if (json_get_string(o, "kernel", &word) >= 0) {
        if (strlen(word) >= sizeof(l->kernel))
            return -EBADMSG;
        memcpy(l->kernel, word, strlen(word) + 1);
    }
    if (json_get_string(o, "policy", &word) >= 0) {
        l->policy = policy_from_string(word);
        if ((int)l->policy < 0)
            return -EBADMSG;
    }
    if (json_object_object_get_ex(o, "usage", NULL))
        CHECK(pack_usage_read(o, &l->usage));
    if (json_object_object_get_ex(o, "replay_end_usec", NULL))
        CHECK(read_replay(o, l));
    return json_object_object_get_ex(o, "packages_usec", NULL) &&
                           json_get_u64(o, "packages_usec", UINT64_MAX - 1, &l->packages_usec) < 0
                   ? -EBADMSG
                   : 0;
}

static int read_members(json_object *o, LaunchRecord *l)
{
    const char *application, *replayed;
    uint64_t version, uid = UID_INVALID;
    int word;

    if (json_get_u64(o, "version", 1, &version) < 0 ||
        json_get_string(o, "application", &application) < 0 ||
        strlen(application) >= sizeof(l->application) ||
        (json_object_object_get_ex(o, "uid", NULL) &&
         json_get_u64(o, "uid", UID_INVALID - 1, &uid) < 0) ||
        json_get_u64(o, "start_realtime_usec", UINT64_MAX - 1, &l->start_realtime_usec) < 0 ||
        json_get_u64(o, "took_usec", LAUNCH_MAX_USEC, &l->took_usec) < 0 || l->took_usec == 0 ||
        json_get_u64(o, "files", UINT64_MAX - 1, &l->files) < 0 ||
        json_get_string(o, "replayed", &replayed) < 0)
        return -EBADMSG;
    word = string_table_lookup(replayed_names, ELEMENTSOF(replayed_names), replayed);
    if (word < 0)
        return -EBADMSG;
    memcpy(l->application, application, strlen(application) + 1);
    l->uid = (uint32_t)uid;
    l->replayed = (LaunchReplayed)word;
    return read_newer_members(o, l);
}

int launch_record_from_line(const char *line, size_t size, LaunchRecord *ret)
{
    LaunchRecord l = {.policy = _POLICY_INVALID, .usage = pack_usage_empty()};
    _cleanup_json_ json_object *o = NULL;
    const char *reason;

    CHECK(json_parse(line, size, 3, &o, &reason));
    if (!json_object_is_type(o, json_type_object))
        return -EBADMSG;
    CHECK(read_members(o, &l));
    *ret = l;
    return 0;
}
