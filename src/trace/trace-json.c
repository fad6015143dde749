/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Over 500 lines in one file: writer and reader are next to each other, so that they can be
 * compared. */

#include "trace/trace-json.h"

#include "base/json-document.h"

#include <string.h>

#define FORMAT_NAME "headstart-trace"

static const char *const flag_names[] = {
        "incomplete",     "exact", "replayed",      "control",  "second-login", "soft-reboot",
        "offline-update", "fsck",  "residency-off", "followed", "late",         "autologin",
};

/* A column whose numbers are usually close to the number in the row before holds the differences
 * between the rows. */
#define COLUMN(name, type, expression)               \
    static int64_t name(const void *table, size_t i) \
    {                                                \
        const type *t = table;                       \
        return (int64_t)(expression);                \
    }
#define DELTA(field) (i == 0 ? t[i].field : t[i].field - t[i - 1].field)
#define INDEX(field) (t[i].field == TRACE_NONE ? -1 : (int64_t)t[i].field)

COLUMN(path_parent, TracePath, t[i].parent)
COLUMN(file_path, TraceFile, (int64_t)t[i].path - (i == 0 ? 0 : (int64_t)t[i - 1].path))
COLUMN(file_volume, TraceFile, INDEX(volume))
COLUMN(file_directory, TraceFile, t[i].directory)
COLUMN(file_inode, TraceFile, DELTA(inode))
COLUMN(file_size, TraceFile, t[i].size_bytes)
COLUMN(file_mtime, TraceFile,
       (uint64_t)t[i].mtime_nsec - (i == 0 ? 0 : (uint64_t)t[i - 1].mtime_nsec))
COLUMN(application_file, TraceApplication, t[i].file)
COLUMN(lifetime_application, TraceLifetime, t[i].application)
COLUMN(lifetime_pid, TraceLifetime, t[i].pid)
COLUMN(lifetime_uid, TraceLifetime, INDEX(uid))
COLUMN(lifetime_start, TraceLifetime, t[i].start)
COLUMN(lifetime_end, TraceLifetime, t[i].end == USEC_INFINITY ? -1 : (int64_t)t[i].end)
COLUMN(access_at, TraceAccess, DELTA(at))
COLUMN(access_file, TraceAccess, (int64_t)t[i].file - (i == 0 ? 0 : (int64_t)t[i - 1].file))
COLUMN(access_application, TraceAccess, INDEX(application))
COLUMN(access_kind, TraceAccess, t[i].kind)

COLUMN(needed_application, TraceNeeded, DELTA(application))
COLUMN(needed_volume, TraceNeeded, t[i].volume)
COLUMN(touched_application, TraceTouched, DELTA(application))
COLUMN(touched_file, TraceTouched, (int64_t)t[i].file - (i == 0 ? 0 : (int64_t)t[i - 1].file))

COLUMN(sample_at, TraceSample, DELTA(at))
COLUMN(sample_busy, TraceSample, DELTA(busy))
COLUMN(sample_stalled, TraceSample, DELTA(stalled))

COLUMN(left_out_uid, TraceLeftOut, INDEX(uid))
COLUMN(left_out_events, TraceLeftOut, t[i].n_events)
COLUMN(left_out_files, TraceLeftOut, t[i].n_files)
COLUMN(left_out_cut, TraceLeftOut, t[i].n_cut)

/* Writes a set of byte ranges as one array: gap, length, gap, length, … */
static void write_ranges(JsonWriter *w, const char *key, const RangeSet *s)
{
    uint64_t few[64], at = 0;
    _cleanup_free_ uint64_t *many = NULL;
    uint64_t *v = few;

    if (2 * s->n > ELEMENTSOF(few)) {
        v = many = reallocarray(NULL, 2 * s->n, sizeof(uint64_t));
        if (!v) {
            w->error = w->error < 0 ? w->error : -ENOMEM;
            return;
        }
    }
    for (size_t i = 0; i < s->n; i++) {
        v[2 * i] = s->ranges[i].offset - at;
        v[2 * i + 1] = s->ranges[i].length;
        at = range_end(&s->ranges[i]);
    }
    json_writer_add_numbers(w, key, v, 2 * s->n);
}

static void write_volume(JsonWriter *w, const TraceVolume *v)
{
    json_writer_open(w, NULL, '{');
    json_writer_add_bytes(w, "uuid", v->uuid);
    json_writer_add_bytes(w, "fstype", v->fstype);
    json_writer_add_bytes(w, "subvolume", v->subvolume);
    json_writer_add_bytes(w, "mountpoint", v->mountpoint);
    json_writer_add_bytes(w, "device", v->device);
    json_writer_add_bytes(w, "scheduler", v->scheduler);
    json_writer_add_string(w, "device_class", device_class_to_string(v->device_class));
    json_writer_add_bool(w, "rotational", v->rotational);
    json_writer_add_u64(w, "size_bytes", v->size_bytes);
    json_writer_add_string(w, "metadata_source", metadata_source_to_string(v->metadata_source));
    write_ranges(w, "metadata", &v->metadata);
    json_writer_close(w, '}');
}

static void write_facts(JsonWriter *w, const Trace *t)
{
    json_writer_add_string(w, "format", FORMAT_NAME);
    json_writer_add_u64(w, "version", TRACE_FORMAT_VERSION);
    json_writer_add_string(w, "stage", stage_to_string(t->stage));
    json_writer_add_flags(w, "flags", t->flags, flag_names, ELEMENTSOF(flag_names));
    json_writer_add_bytes(w, "boot_id", t->boot_id);
    json_writer_add_bytes(w, "kernel", t->kernel);
    json_writer_add_bytes(w, "distribution", t->distribution);
    json_writer_add_i64(w, "uid", t->uid == UID_INVALID ? -1 : (int64_t)t->uid);
    json_writer_add_u64(w, "start_realtime_usec", t->start_realtime);
    json_writer_add_u64(w, "start_boottime_usec", t->start_boottime);
    json_writer_add_u64(w, "duration_usec", t->duration);
    json_writer_add_string(w, "policy", policy_to_string(t->policy));
    json_writer_add_string(w, "process_source", process_source_to_string(t->process_source));
    json_writer_add_u64(w, "n_unknown_application", t->n_unknown_application);
    json_writer_add_u64(w, "n_unresolved", t->n_unresolved);
    json_writer_add_u64(w, "n_own", t->n_own);
    json_writer_add_u64(w, "n_overflows", t->n_overflows);
}

/* Writes the time of the replay and the samples, if they are known. */
static void write_measurements(JsonWriter *w, const Trace *t)
{
    if (t->replay.known) {
        json_writer_open(w, "replay", '{');
        json_writer_add_u64(w, "start_usec", t->replay.start);
        json_writer_add_u64(w, "end_usec", t->replay.end);
        json_writer_close(w, '}');
    }
    if (t->n_samples > 0) {
        json_writer_open(w, "samples", '{');
        json_writer_add_column(w, "at_usec_delta", t->samples, t->n_samples, sample_at);
        json_writer_add_column(w, "busy_usec_delta", t->samples, t->n_samples, sample_busy);
        json_writer_add_column(w, "stalled_usec_delta", t->samples, t->n_samples, sample_stalled);
        json_writer_close(w, '}');
    }
}

/* Writes the touched pages of files; only sessions have them. */
static void write_touched(JsonWriter *w, const Trace *t)
{
    if (t->n_touched == 0)
        return;
    json_writer_open(w, "touched", '{');
    json_writer_add_column(w, "application_delta", t->touched, t->n_touched, touched_application);
    json_writer_add_column(w, "file_delta", t->touched, t->n_touched, touched_file);
    json_writer_open(w, "ranges", '[');
    for (size_t i = 0; i < t->n_touched; i++)
        write_ranges(w, NULL, &t->touched[i].ranges);
    json_writer_close(w, ']');
    json_writer_close(w, '}');
}

/* Writes the metadata that control starts needed; few sessions have any. */
static void write_needed(JsonWriter *w, const Trace *t)
{
    if (t->n_needed == 0)
        return;
    json_writer_open(w, "needed_metadata", '{');
    json_writer_add_column(w, "application_delta", t->needed, t->n_needed, needed_application);
    json_writer_add_column(w, "volume", t->needed, t->n_needed, needed_volume);
    json_writer_open(w, "ranges", '[');
    for (size_t i = 0; i < t->n_needed; i++)
        write_ranges(w, NULL, &t->needed[i].ranges);
    json_writer_close(w, ']');
    json_writer_close(w, '}');
}

/* Writes which files were only looked up, on filesystems without a metadata source. */
static void write_looked_up(JsonWriter *w, const Trace *t)
{
    size_t last = 0;
    bool any = false;

    for (size_t i = 0; i < t->n_files; i++)
        any = any || t->files[i].looked_up;
    if (!any)
        return;
    json_writer_open(w, "looked_up", '{');
    json_writer_open(w, "file_delta", '[');
    for (size_t i = 0; i < t->n_files; i++)
        if (t->files[i].looked_up) {
            json_writer_add_u64(w, NULL, i - last);
            last = i;
        }
    json_writer_close(w, ']');
    json_writer_close(w, '}');
}

/* Most traces lack this member, because every share is far above what a user opens. */
static void write_left_out(JsonWriter *w, const Trace *t)
{
    if (t->n_left_out == 0)
        return;
    json_writer_open(w, "left_out", '{');
    json_writer_add_column(w, "uid", t->left_out, t->n_left_out, left_out_uid);
    json_writer_add_column(w, "n_events", t->left_out, t->n_left_out, left_out_events);
    json_writer_add_column(w, "n_files", t->left_out, t->n_left_out, left_out_files);
    json_writer_add_column(w, "n_cut", t->left_out, t->n_left_out, left_out_cut);
    json_writer_close(w, '}');
}

int trace_to_json(const Trace *t, char **ret, size_t *ret_size)
{
    _cleanup_json_writer_ JsonWriter w = {0};

    write_facts(&w, t);

    json_writer_open(&w, "volumes", '[');
    for (size_t i = 0; i < t->n_volumes; i++)
        write_volume(&w, &t->volumes[i]);
    json_writer_close(&w, ']');

    json_writer_open(&w, "paths", '{');
    json_writer_add_column(&w, "parent", t->paths, t->n_paths, path_parent);
    json_writer_open(&w, "name", '[');
    for (size_t i = 0; i < t->n_paths; i++)
        json_writer_add_bytes(&w, NULL, t->paths[i].name);
    json_writer_close(&w, ']');
    json_writer_close(&w, '}');

    json_writer_open(&w, "files", '{');
    json_writer_add_column(&w, "path_delta", t->files, t->n_files, file_path);
    json_writer_add_column(&w, "volume", t->files, t->n_files, file_volume);
    json_writer_add_column(&w, "directory", t->files, t->n_files, file_directory);
    json_writer_add_column(&w, "inode_delta", t->files, t->n_files, file_inode);
    json_writer_add_column(&w, "size_bytes", t->files, t->n_files, file_size);
    json_writer_add_column(&w, "mtime_nsec_delta", t->files, t->n_files, file_mtime);
    json_writer_open(&w, "resident", '[');
    for (size_t i = 0; i < t->n_files; i++)
        write_ranges(&w, NULL, &t->files[i].resident);
    json_writer_close(&w, ']');
    json_writer_close(&w, '}');

    json_writer_add_column(&w, "applications", t->applications, t->n_applications,
                           application_file);

    json_writer_open(&w, "lifetimes", '{');
    json_writer_add_column(&w, "application", t->lifetimes, t->n_lifetimes, lifetime_application);
    json_writer_add_column(&w, "pid", t->lifetimes, t->n_lifetimes, lifetime_pid);
    json_writer_add_column(&w, "uid", t->lifetimes, t->n_lifetimes, lifetime_uid);
    json_writer_add_column(&w, "start_usec", t->lifetimes, t->n_lifetimes, lifetime_start);
    json_writer_add_column(&w, "end_usec", t->lifetimes, t->n_lifetimes, lifetime_end);
    json_writer_close(&w, '}');

    json_writer_open(&w, "accesses", '{');
    json_writer_add_column(&w, "at_usec_delta", t->accesses, t->n_accesses, access_at);
    json_writer_add_column(&w, "file_delta", t->accesses, t->n_accesses, access_file);
    json_writer_add_column(&w, "application", t->accesses, t->n_accesses, access_application);
    json_writer_add_column(&w, "kind", t->accesses, t->n_accesses, access_kind);
    json_writer_close(&w, '}');

    /* Older recorders did not measure the time until the stage was ready. */
    if (t->timing.ready > 0) {
        json_writer_open(&w, "timing", '{');
        json_writer_add_u64(&w, "ready_usec", t->timing.ready);
        json_writer_add_u64(&w, "stalled_usec", t->timing.stalled);
        json_writer_add_u64(&w, "busy_usec", t->timing.busy);
        json_writer_add_u64(&w, "n_cpus", t->timing.n_cpus);
        json_writer_close(&w, '}');
    }

    write_measurements(&w, t);
    write_touched(&w, t);
    write_needed(&w, t);
    write_looked_up(&w, t);
    write_left_out(&w, t);
    return json_writer_finish(&w, ret, ret_size);
}

/* The reader. `where` is the member that was read last, for the error text. */
typedef struct Reader {
    JsonDocument document;
    Trace *t;
    const char *where;
} Reader;

static int read_bytes(Reader *r, struct json_object *o, const char *key, char **ret)
{
    const char *s;
    char *copy;

    r->where = key;
    CHECK(json_get_string(o, key, &s));
    copy = json_unescape_bytes(s);
    if (!copy)
        return -EBADMSG;
    free(*ret);
    *ret = copy;
    return 0;
}

/* Reads a word, which `from_string` converts to an enum, into `field`. */
#define READ_WORD(r, o, key, from_string, field)    \
    do {                                            \
        const char *_word;                          \
        (r)->where = (key);                         \
        CHECK(json_get_string((o), (key), &_word)); \
        (field) = from_string(_word);               \
        if ((int)(field) < 0)                       \
            return -EBADMSG;                        \
    } while (0)

static int read_u64(Reader *r, struct json_object *o, const char *key, uint64_t *ret)
{
    r->where = key;
    return json_get_u64(o, key, TRACE_NUMBER_MAX, ret);
}

static int read_ranges(JsonColumn c, RangeSet *ret)
{
    uint64_t at = 0;

    if (c.n % 2)
        return -EBADMSG;
    for (bool first = true; c.n > 0; first = false) {
        uint64_t gap, length, start, end;

        CHECK(json_next_u64(&c, TRACE_NUMBER_MAX, &gap));
        CHECK(json_next_u64(&c, TRACE_NUMBER_MAX, &length));
        /* Touching ranges would be one range, so a gap of 0 is allowed only before the first
         * range. */
        if (length == 0 || (!first && gap == 0) || __builtin_add_overflow(at, gap, &start) ||
            __builtin_add_overflow(start, length, &end))
            return -EBADMSG;
        CHECK(range_set_insert(ret, start, length));
        at = end;
    }
    return 0;
}

static int read_volumes(Reader *r, struct json_object *o)
{
    struct json_object *a;

    r->where = "volumes";
    CHECK(json_get_array(o, "volumes", TRACE_VOLUMES_MAX, &a));
    for (size_t i = 0; i < json_object_array_length(a); i++) {
        struct json_object *j = json_object_array_get_idx(a, i);
        JsonColumn metadata;
        TraceVolume *v;

        CHECK(grow_array(&r->t->volumes, &r->t->allocated_volumes, i + 1, sizeof(TraceVolume)));
        v = &r->t->volumes[i];
        *v = (TraceVolume){0};
        r->t->n_volumes = i + 1;
        CHECK(read_bytes(r, j, "uuid", &v->uuid));
        CHECK(read_bytes(r, j, "fstype", &v->fstype));
        CHECK(read_bytes(r, j, "subvolume", &v->subvolume));
        CHECK(read_bytes(r, j, "mountpoint", &v->mountpoint));
        CHECK(read_bytes(r, j, "device", &v->device));
        CHECK(read_bytes(r, j, "scheduler", &v->scheduler));
        READ_WORD(r, j, "device_class", device_class_from_string, v->device_class);
        r->where = "rotational";
        CHECK(json_get_bool(j, "rotational", &v->rotational));
        CHECK(read_u64(r, j, "size_bytes", &v->size_bytes));
        READ_WORD(r, j, "metadata_source", metadata_source_from_string, v->metadata_source);
        r->where = "metadata";
        CHECK(json_get_column(&r->document, j, "metadata", 2 * TRACE_ACCESSES_MAX, &metadata));
        CHECK(read_ranges(metadata, &v->metadata));
    }
    return 0;
}

static int read_paths(Reader *r, struct json_object *o)
{
    struct json_object *names;
    JsonColumn parents;
    uint64_t parent;
    size_t n;

    r->where = "paths";
    CHECK(json_get_object(o, "paths", &o));
    CHECK(json_get_column(&r->document, o, "parent", TRACE_PATHS_MAX, &parents));
    CHECK(json_get_array(o, "name", TRACE_PATHS_MAX, &names));
    n = json_object_array_length(names);
    if (n == 0 || parents.n != n)
        return -EBADMSG;
    CHECK(grow_array(&r->t->paths, &r->t->allocated_paths, n, sizeof(TracePath)));
    /* trace_new() has made the root. */
    CHECK(json_next_u64(&parents, UINT64_MAX, &parent));
    for (size_t i = 1; i < n; i++) {
        const char *name;
        char *copy;

        CHECK(json_next_u64(&parents, i - 1, &parent));
        CHECK(json_at_string(names, i, &name));
        copy = json_unescape_bytes(name);
        if (!copy)
            return -EBADMSG;
        r->t->paths[i] = (TracePath){.parent = (uint32_t)parent, .name = copy};
        r->t->n_paths = i + 1;
    }
    return 0;
}

/* Reads an index. -1 means TRACE_NONE. */
static int read_index(JsonColumn *c, uint32_t *ret)
{
    int64_t v;

    CHECK(json_next_i64(c, &v));
    if (v < -1 || v >= (int64_t)TRACE_NONE)
        return -EBADMSG;
    *ret = v < 0 ? TRACE_NONE : (uint32_t)v;
    return 0;
}

/* Adds the next difference to *at, which must stay a valid index. */
static int step_index(JsonColumn *c, int64_t *at)
{
    int64_t d;

    CHECK(json_next_i64(c, &d));
    if (__builtin_add_overflow(*at, d, at) || *at < 0 || *at >= (int64_t)TRACE_NONE)
        return -EBADMSG;
    return 0;
}

static int read_files(Reader *r, struct json_object *o)
{
    static const char *const keys[] = {"path_delta", "volume",           "directory", "inode_delta",
                                       "size_bytes", "mtime_nsec_delta", "resident"};
    uint64_t inode = 0, mtime = 0;
    int64_t path = 0;
    JsonColumn c[ELEMENTSOF(keys)], resident;
    size_t n, n_ranges = 0;

    r->where = "files";
    CHECK(json_get_object(o, "files", &o));
    CHECK(json_get_columns(&r->document, o, keys, ELEMENTSOF(keys), TRACE_FILES_MAX, c));
    n = c[0].n;
    CHECK(grow_array(&r->t->files, &r->t->allocated_files, n, sizeof(TraceFile)));
    for (size_t i = 0; i < n; i++) {
        TraceFile *f = &r->t->files[i];
        uint64_t directory;
        int64_t d;

        *f = (TraceFile){0};
        r->t->n_files = i + 1;
        CHECK(step_index(&c[0], &path));
        f->path = (uint32_t)path;
        CHECK(read_index(&c[1], &f->volume));
        CHECK(json_next_u64(&c[2], 1, &directory));
        f->directory = directory;
        CHECK(json_next_i64(&c[3], &d));
        inode += (uint64_t)d;
        f->inode = inode;
        CHECK(json_next_u64(&c[4], TRACE_NUMBER_MAX, &f->size_bytes));
        CHECK(json_next_i64(&c[5], &d));
        mtime += (uint64_t)d;
        f->mtime_nsec = (int64_t)mtime;
        CHECK(json_next_column(&c[6], 2 * (size_t)(TRACE_RANGES_MAX - n_ranges), &resident));
        n_ranges += resident.n / 2;
        CHECK(read_ranges(resident, &f->resident));
    }
    return 0;
}

static int read_applications(Reader *r, struct json_object *o)
{
    JsonColumn c;
    size_t n;

    r->where = "applications";
    CHECK(json_get_column(&r->document, o, "applications", TRACE_FILES_MAX, &c));
    n = c.n;
    CHECK(grow_array(&r->t->applications, &r->t->allocated_applications, n,
                     sizeof(TraceApplication)));
    for (size_t i = 0; i < n; i++) {
        uint64_t v;

        CHECK(json_next_u64(&c, TRACE_NONE - 1, &v));
        r->t->applications[i].file = (uint32_t)v;
        r->t->n_applications = i + 1;
    }
    return 0;
}

static int read_lifetimes(Reader *r, struct json_object *o)
{
    static const char *const keys[] = {"application", "pid", "uid", "start_usec", "end_usec"};
    JsonColumn c[ELEMENTSOF(keys)];
    size_t n;

    r->where = "lifetimes";
    CHECK(json_get_object(o, "lifetimes", &o));
    CHECK(json_get_columns(&r->document, o, keys, ELEMENTSOF(keys), TRACE_LIFETIMES_MAX, c));
    n = c[0].n;
    CHECK(grow_array(&r->t->lifetimes, &r->t->allocated_lifetimes, n, sizeof(TraceLifetime)));
    for (size_t i = 0; i < n; i++) {
        TraceLifetime *l = &r->t->lifetimes[i];
        uint64_t application, pid, start;
        int64_t end;

        CHECK(json_next_u64(&c[0], TRACE_NONE - 1, &application));
        CHECK(json_next_u64(&c[1], UINT32_MAX, &pid));
        CHECK(read_index(&c[2], &l->uid));
        CHECK(json_next_u64(&c[3], TRACE_NUMBER_MAX, &start));
        CHECK(json_next_i64(&c[4], &end));
        if (end < -1)
            return -EBADMSG;
        l->application = (uint32_t)application;
        l->pid = (uint32_t)pid;
        l->start = start;
        l->end = end < 0 ? USEC_INFINITY : (usec_t)end;
        r->t->n_lifetimes = i + 1;
    }
    return 0;
}

static int read_accesses(Reader *r, struct json_object *o)
{
    static const char *const keys[] = {"at_usec_delta", "file_delta", "application", "kind"};
    uint64_t at = 0;
    int64_t file = 0;
    JsonColumn c[ELEMENTSOF(keys)];
    size_t n;

    r->where = "accesses";
    CHECK(json_get_object(o, "accesses", &o));
    CHECK(json_get_columns(&r->document, o, keys, ELEMENTSOF(keys), TRACE_ACCESSES_MAX, c));
    n = c[0].n;
    CHECK(grow_array(&r->t->accesses, &r->t->allocated_accesses, n, sizeof(TraceAccess)));
    for (size_t i = 0; i < n; i++) {
        TraceAccess *a = &r->t->accesses[i];
        uint64_t d, kind;

        CHECK(json_next_u64(&c[0], TRACE_NUMBER_MAX, &d));
        if (__builtin_add_overflow(at, d, &at) || at > TRACE_NUMBER_MAX)
            return -EBADMSG;
        CHECK(step_index(&c[1], &file));
        CHECK(read_index(&c[2], &a->application));
        CHECK(json_next_u64(&c[3], _ACCESS_KIND_MAX - 1, &kind));
        a->at = at;
        a->file = (uint32_t)file;
        a->kind = (AccessKind)kind;
        r->t->n_accesses = i + 1;
    }
    return 0;
}

static int read_replay(Reader *r, struct json_object *o)
{
    TraceReplay *replay = &r->t->replay;

    r->where = "replay";
    if (!json_object_object_get_ex(o, "replay", NULL))
        return 0;
    CHECK(json_get_object(o, "replay", &o));
    CHECK(json_get_u64(o, "start_usec", TRACE_NUMBER_MAX, &replay->start));
    CHECK(json_get_u64(o, "end_usec", TRACE_NUMBER_MAX, &replay->end));
    replay->known = true;
    return 0;
}

static int read_samples(Reader *r, struct json_object *o)
{
    static const char *const keys[] = {"at_usec_delta", "busy_usec_delta", "stalled_usec_delta"};
    JsonColumn c[ELEMENTSOF(keys)];
    TraceSample s = {0};

    r->where = "samples";
    if (!json_object_object_get_ex(o, "samples", NULL))
        return 0;
    CHECK(json_get_object(o, "samples", &o));
    CHECK(json_get_columns(&r->document, o, keys, ELEMENTSOF(keys), TRACE_SAMPLES_MAX, c));
    for (size_t n = c[0].n; n > 0; n--) {
        uint64_t at, busy, stalled;

        CHECK(json_next_u64(&c[0], TRACE_NUMBER_MAX / TRACE_SAMPLES_MAX, &at));
        CHECK(json_next_u64(&c[1], TRACE_NUMBER_MAX / TRACE_SAMPLES_MAX, &busy));
        CHECK(json_next_u64(&c[2], TRACE_NUMBER_MAX / TRACE_SAMPLES_MAX, &stalled));
        s.at += at;
        s.busy += busy;
        s.stalled += stalled;
        CHECK(trace_add_sample(r->t, &s));
    }
    return 0;
}

static int read_touched(Reader *r, struct json_object *o)
{
    static const char *const keys[] = {"application_delta", "file_delta", "ranges"};
    JsonColumn c[ELEMENTSOF(keys)], ranges;
    int64_t application = 0, file = 0;
    size_t n_ranges = 0;

    r->where = "touched";
    if (!json_object_object_get_ex(o, "touched", NULL))
        return 0;
    CHECK(json_get_object(o, "touched", &o));
    CHECK(json_get_columns(&r->document, o, keys, ELEMENTSOF(keys), TRACE_TOUCHED_MAX, c));
    for (size_t n = c[0].n; n > 0; n--) {
        _cleanup_range_set_ RangeSet found = {0};

        CHECK(step_index(&c[0], &application));
        CHECK(step_index(&c[1], &file));
        CHECK(json_next_column(&c[2], 2 * (size_t)(TRACE_RANGES_MAX - n_ranges), &ranges));
        n_ranges += ranges.n / 2;
        CHECK(read_ranges(ranges, &found));
        CHECK(trace_add_touched(r->t, (uint32_t)application, (uint32_t)file, &found));
    }
    return 0;
}

static int read_needed(Reader *r, struct json_object *o)
{
    static const char *const keys[] = {"application_delta", "volume", "ranges"};
    JsonColumn c[ELEMENTSOF(keys)], ranges;
    int64_t application = 0;
    size_t n_ranges = 0;

    r->where = "needed_metadata";
    if (!json_object_object_get_ex(o, "needed_metadata", NULL))
        return 0;
    CHECK(json_get_object(o, "needed_metadata", &o));
    CHECK(json_get_columns(&r->document, o, keys, ELEMENTSOF(keys), TRACE_NEEDED_MAX, c));
    for (size_t n = c[0].n; n > 0; n--) {
        _cleanup_range_set_ RangeSet found = {0};
        uint32_t volume;

        CHECK(step_index(&c[0], &application));
        CHECK(read_index(&c[1], &volume));
        CHECK(json_next_column(&c[2], 2 * (size_t)(TRACE_RANGES_MAX - n_ranges), &ranges));
        n_ranges += ranges.n / 2;
        CHECK(read_ranges(ranges, &found));
        CHECK(trace_add_needed(r->t, (uint32_t)application, volume, &found));
    }
    return 0;
}

static int read_looked_up(Reader *r, struct json_object *o)
{
    int64_t file = 0;
    JsonColumn c;

    r->where = "looked_up";
    if (!json_object_object_get_ex(o, "looked_up", NULL))
        return 0;
    CHECK(json_get_object(o, "looked_up", &o));
    CHECK(json_get_column(&r->document, o, "file_delta", TRACE_FILES_MAX, &c));
    for (size_t n = c.n; n > 0; n--) {
        CHECK(step_index(&c, &file));
        if ((size_t)file >= r->t->n_files)
            return -EBADMSG;
        r->t->files[file].looked_up = true;
    }
    return 0;
}

static int read_left_out(Reader *r, struct json_object *o)
{
    static const char *const keys[] = {"uid", "n_events", "n_files", "n_cut"};
    JsonColumn c[ELEMENTSOF(keys)];

    r->where = "left_out";
    if (!json_object_object_get_ex(o, "left_out", NULL))
        return 0;
    CHECK(json_get_object(o, "left_out", &o));
    CHECK(json_get_columns(&r->document, o, keys, ELEMENTSOF(keys), TRACE_LEFT_OUT_MAX, c));
    for (size_t n = c[0].n; n > 0; n--) {
        TraceLeftOut l;

        CHECK(read_index(&c[0], &l.uid));
        CHECK(json_next_u64(&c[1], TRACE_NUMBER_MAX, &l.n_events));
        CHECK(json_next_u64(&c[2], TRACE_NUMBER_MAX, &l.n_files));
        CHECK(json_next_u64(&c[3], TRACE_NUMBER_MAX, &l.n_cut));
        CHECK(trace_add_left_out(r->t, &l));
    }
    return 0;
}

static int read_timing(Reader *r, struct json_object *o)
{
    uint64_t n_cpus;

    r->where = "timing";
    if (!json_object_object_get_ex(o, "timing", NULL))
        return 0;
    CHECK(json_get_object(o, "timing", &o));
    CHECK(json_get_u64(o, "ready_usec", TRACE_NUMBER_MAX, &r->t->timing.ready));
    CHECK(json_get_u64(o, "stalled_usec", TRACE_NUMBER_MAX, &r->t->timing.stalled));
    CHECK(json_get_u64(o, "busy_usec", TRACE_NUMBER_MAX, &r->t->timing.busy));
    CHECK(json_get_u64(o, "n_cpus", TRACE_CPUS_MAX, &n_cpus));
    r->t->timing.n_cpus = (uint32_t)n_cpus;
    return r->t->timing.stalled <= r->t->timing.ready ? 0 : -EBADMSG;
}

static int read_flags(Reader *r, struct json_object *o)
{
    struct json_object *a;

    r->where = "flags";
    CHECK(json_get_array(o, "flags", ELEMENTSOF(flag_names), &a));
    for (size_t i = 0; i < json_object_array_length(a); i++) {
        struct json_object *s = json_object_array_get_idx(a, i);
        int k;

        if (!json_object_is_type(s, json_type_string))
            return -EBADMSG;
        k = string_table_lookup(flag_names, ELEMENTSOF(flag_names), json_object_get_string(s));
        if (k < 0)
            return -EBADMSG;
        r->t->flags |= 1U << k;
    }
    return 0;
}

static int read_facts(Reader *r, struct json_object *o)
{
    Trace *t = r->t;
    int64_t uid;

    CHECK(read_flags(r, o));
    CHECK(read_bytes(r, o, "boot_id", &t->boot_id));
    CHECK(read_bytes(r, o, "kernel", &t->kernel));
    CHECK(read_bytes(r, o, "distribution", &t->distribution));
    r->where = "uid";
    CHECK(json_get_i64(o, "uid", &uid));
    if (uid < -1 || uid >= (int64_t)UID_INVALID)
        return -EBADMSG;
    t->uid = uid < 0 ? UID_INVALID : (uint32_t)uid;
    CHECK(read_u64(r, o, "start_realtime_usec", &t->start_realtime));
    CHECK(read_u64(r, o, "start_boottime_usec", &t->start_boottime));
    CHECK(read_u64(r, o, "duration_usec", &t->duration));
    READ_WORD(r, o, "policy", policy_from_string, t->policy);
    READ_WORD(r, o, "process_source", process_source_from_string, t->process_source);
    CHECK(read_u64(r, o, "n_unknown_application", &t->n_unknown_application));
    CHECK(read_u64(r, o, "n_unresolved", &t->n_unresolved));
    CHECK(read_u64(r, o, "n_own", &t->n_own));
    CHECK(read_u64(r, o, "n_overflows", &t->n_overflows));
    return 0;
}

static int read_all(Reader *r)
{
    struct json_object *o = r->document.root;

    CHECK(read_facts(r, o));
    CHECK(read_volumes(r, o));
    CHECK(read_paths(r, o));
    CHECK(read_files(r, o));
    CHECK(read_applications(r, o));
    CHECK(read_lifetimes(r, o));
    CHECK(read_accesses(r, o));
    CHECK(read_replay(r, o));
    CHECK(read_samples(r, o));
    CHECK(read_touched(r, o));
    CHECK(read_needed(r, o));
    CHECK(read_looked_up(r, o));
    CHECK(read_left_out(r, o));
    CHECK(read_timing(r, o));
    r->where = "cross-references";
    return trace_validate(r->t);
}

static int fail(int error, char **ret_error, const char *format, const char *detail)
{
    if (ret_error && asprintf(ret_error, format, detail) < 0)
        *ret_error = NULL;
    return error;
}

int trace_from_json(const char *text, size_t size, Trace **ret, char **ret_error)
{
    _cleanup_json_document_ JsonDocument document = {0};
    _cleanup_trace_ Trace *t = NULL;
    const char *reason = NULL, *word;
    struct json_object *o;
    uint64_t version;
    Reader reader;
    Stage stage;
    int r;

    if (ret_error)
        *ret_error = NULL;
    if (size > TRACE_JSON_SIZE_MAX)
        return fail(-E2BIG, ret_error, "larger than a trace may be%s", "");
    r = json_document_parse(text, size, 8, &document, &reason);
    if (r < 0)
        return fail(r, ret_error, "%s", reason ? reason : "out of memory");
    o = document.root;
    if (json_get_string(o, "format", &word) < 0 || strcmp(word, FORMAT_NAME) != 0)
        return fail(-EMEDIUMTYPE, ret_error, "not a headstart trace%s", "");
    if (json_get_u64(o, "version", UINT32_MAX, &version) < 0 || version != TRACE_FORMAT_VERSION)
        return fail(-EPROTONOSUPPORT, ret_error, "a trace of another format version%s", "");
    if (json_get_string(o, "stage", &word) < 0 || (stage = stage_from_string(word)) < 0)
        return fail(-EBADMSG, ret_error, "\"%s\" is missing or wrong", "stage");

    t = trace_new(stage);
    if (!t)
        return -ENOMEM;
    reader = (Reader){.document = document, .t = t, .where = "facts"};
    r = read_all(&reader);
    if (r == -ENOMEM)
        return r;
    if (r < 0)
        return fail(-EBADMSG, ret_error, "\"%s\" is missing or wrong", reader.where);
    trace_end_building(t);
    *ret = TAKE_PTR(t);
    return 0;
}
