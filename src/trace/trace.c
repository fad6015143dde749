/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Over 500 lines in one file: the builder and the checks of each field are next to each other. */

#include "trace/trace.h"

#include <limits.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Lookup tables of the builder. uthash sets `oom` of an element that it could not insert. */
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(elt) ((elt)->oom = true)

/* (parent, name) -> path */
typedef struct PathEntry {
    UT_hash_handle hh;
    uint32_t id;
    bool oom;
    char key[]; /* parent's number, then the name, not terminated */
} PathEntry;

/* id -> id, as an array, since ids are dense; TRACE_NONE: no entry. */
typedef struct IdTable {
    uint32_t *ids;
    size_t n, allocated;
} IdTable;

struct TraceIndex {
    PathEntry *paths;
    IdTable files;        /* path -> file */
    IdTable applications; /* file -> application */
    uint64_t path_bytes;  /* of the full paths of all files */
};

static void index_free(struct TraceIndex *x)
{
    PathEntry *e, *tmp;

    if (!x)
        return;
    HASH_ITER (hh, x->paths, e, tmp) {
        HASH_DEL(x->paths, e);
        free(e);
    }
    free(x->files.ids);
    free(x->applications.ids);
    free(x);
}

void trace_end_building(Trace *t)
{
    index_free(t->index);
    t->index = NULL;
}

Trace *trace_free(Trace *t)
{
    if (!t)
        return NULL;
    index_free(t->index);
    for (size_t i = 0; i < t->n_volumes; i++) {
        TraceVolume *v = &t->volumes[i];
        free(v->uuid);
        free(v->fstype);
        free(v->subvolume);
        free(v->mountpoint);
        free(v->device);
        free(v->scheduler);
        range_set_done(&v->metadata);
    }
    for (size_t i = 0; i < t->n_paths; i++)
        free(t->paths[i].name);
    for (size_t i = 0; i < t->n_files; i++)
        range_set_done(&t->files[i].resident);
    for (size_t i = 0; i < t->n_touched; i++)
        range_set_done(&t->touched[i].ranges);
    free(t->touched);
    for (size_t i = 0; i < t->n_needed; i++)
        range_set_done(&t->needed[i].ranges);
    free(t->needed);
    free(t->volumes);
    free(t->paths);
    free(t->files);
    free(t->applications);
    free(t->lifetimes);
    free(t->accesses);
    free(t->left_out);
    free(t->samples);
    free(t->boot_id);
    free(t->kernel);
    free(t->distribution);
    free(t);
    return NULL;
}

Trace *trace_new(Stage stage)
{
    _cleanup_trace_ Trace *t = calloc(1, sizeof(Trace));

    if (!t)
        return NULL;
    t->stage = stage;
    t->uid = UID_INVALID;
    t->boot_id = strdup("");
    t->kernel = strdup("");
    t->distribution = strdup("");
    t->index = calloc(1, sizeof(struct TraceIndex));
    if (!t->boot_id || !t->kernel || !t->distribution || !t->index)
        return NULL;

    /* The root of the path tree. */
    if (grow_array(&t->paths, &t->allocated_paths, 1, sizeof(TracePath)) < 0)
        return NULL;
    t->paths[0] = (TracePath){.parent = 0, .name = strdup("")};
    if (!t->paths[0].name)
        return NULL;
    t->n_paths = 1;
    return TAKE_PTR(t);
}

int trace_add_volume(Trace *t, const TraceVolume *v, uint32_t *ret)
{
    TraceVolume c = *v;
    int r;

    if (t->n_volumes >= TRACE_VOLUMES_MAX)
        return -E2BIG;
    r = grow_array(&t->volumes, &t->allocated_volumes, t->n_volumes + 1, sizeof(TraceVolume));
    if (r < 0)
        return r;
    c.metadata = (RangeSet){0};
    c.uuid = strdup(v->uuid ? v->uuid : "");
    c.fstype = strdup(v->fstype ? v->fstype : "");
    c.subvolume = strdup(v->subvolume ? v->subvolume : "");
    c.mountpoint = strdup(v->mountpoint ? v->mountpoint : "/");
    c.device = strdup(v->device ? v->device : "");
    c.scheduler = strdup(v->scheduler ? v->scheduler : "");
    if (!c.uuid || !c.fstype || !c.subvolume || !c.mountpoint || !c.device || !c.scheduler ||
        range_set_copy(&v->metadata, &c.metadata) < 0) {
        free(c.uuid);
        free(c.fstype);
        free(c.subvolume);
        free(c.mountpoint);
        free(c.device);
        free(c.scheduler);
        return -ENOMEM;
    }
    *ret = (uint32_t)t->n_volumes;
    t->volumes[t->n_volumes++] = c;
    return 0;
}

/* Finds or adds one path component. The hash key is the part of a PathEntry that holds parent and
 * name as consecutive bytes. */
static int intern_name(Trace *t, uint32_t parent, const char *name, size_t length, uint32_t *ret)
{
    char key[sizeof(uint32_t) + NAME_MAX];
    _cleanup_free_ PathEntry *e = NULL;
    _cleanup_free_ char *copy = NULL;
    PathEntry *found;
    int r;

    if (length == 0 || length > NAME_MAX)
        return -EINVAL;
    memcpy(key, &parent, sizeof(parent));
    memcpy(key + sizeof(parent), name, length);
    HASH_FIND(hh, t->index->paths, key, sizeof(parent) + length, found);
    if (found) {
        *ret = found->id;
        return 0;
    }

    if (t->n_paths >= TRACE_PATHS_MAX)
        return -E2BIG;
    r = grow_array(&t->paths, &t->allocated_paths, t->n_paths + 1, sizeof(TracePath));
    if (r < 0)
        return r;
    e = calloc(1, offsetof(PathEntry, key) + sizeof(parent) + length);
    copy = strndup(name, length);
    if (!e || !copy)
        return -ENOMEM;
    e->id = (uint32_t)t->n_paths;
    memcpy(e->key, key, sizeof(parent) + length);
    HASH_ADD_KEYPTR(hh, t->index->paths, e->key, sizeof(parent) + length, e);
    if (e->oom)
        return -ENOMEM;

    t->paths[t->n_paths++] = (TracePath){.parent = parent, .name = TAKE_PTR(copy)};
    *ret = e->id;
    e = NULL; /* the table owns it */
    return 0;
}

int trace_add_path(Trace *t, const char *path, uint32_t *ret)
{
    uint32_t at = 0;
    const char *p = path;

    if (!t->index || *p != '/' || strnlen(path, TRACE_PATH_MAX) >= TRACE_PATH_MAX)
        return -EINVAL;
    if (p[1] == 0) {
        *ret = 0;
        return 0;
    }
    while (*p) {
        size_t l;
        int r;

        p++; /* the slash */
        l = strcspn(p, "/");
        if (l == 0 || (l == 1 && p[0] == '.') || (l == 2 && p[0] == '.' && p[1] == '.'))
            return -EINVAL;
        r = intern_name(t, at, p, l, &at);
        if (r < 0)
            return r;
        p += l;
    }
    *ret = at;
    return 0;
}

/* Finds the id stored under `key`, or stores `fresh` if there is none. */
static int id_table_find_or_add(IdTable *table, uint32_t key, uint32_t fresh, uint32_t *ret)
{
    int r = grow_array(&table->ids, &table->allocated, (size_t)key + 1, sizeof(uint32_t));

    if (r < 0)
        return r;
    while (table->n <= key)
        table->ids[table->n++] = TRACE_NONE;
    if (table->ids[key] == TRACE_NONE)
        table->ids[key] = fresh;
    *ret = table->ids[key];
    return 0;
}

size_t trace_path_bytes(const Trace *t, uint32_t path)
{
    size_t bytes = path == 0 ? 2 : 1; /* "/" and the NUL, or the NUL alone */

    for (uint32_t i = path; i != 0; i = t->paths[i].parent)
        bytes += 1 + strlen(t->paths[i].name);
    return bytes;
}

int trace_add_file(Trace *t, uint32_t path, uint32_t volume, bool directory, uint32_t *ret)
{
    uint64_t path_bytes;
    uint32_t id;
    int r;

    if (!t->index || path >= t->n_paths || (volume != TRACE_NONE && volume >= t->n_volumes))
        return -EINVAL;
    path_bytes = t->index->path_bytes + trace_path_bytes(t, path);
    if (t->n_files >= TRACE_FILES_MAX || path_bytes > TRACE_PATH_BYTES_MAX)
        return -E2BIG;
    r = grow_array(&t->files, &t->allocated_files, t->n_files + 1, sizeof(TraceFile));
    if (r < 0)
        return r;
    r = id_table_find_or_add(&t->index->files, path, (uint32_t)t->n_files, &id);
    if (r < 0)
        return r;
    if (id == t->n_files) {
        t->index->path_bytes = path_bytes;
        t->files[t->n_files++] =
                (TraceFile){.path = path, .volume = volume, .directory = directory};
    }
    *ret = id;
    return 0;
}

int trace_add_application(Trace *t, uint32_t file, uint32_t *ret)
{
    uint32_t id;
    int r;

    if (!t->index || file >= t->n_files)
        return -EINVAL;
    r = grow_array(&t->applications, &t->allocated_applications, t->n_applications + 1,
                   sizeof(TraceApplication));
    if (r < 0)
        return r;
    r = id_table_find_or_add(&t->index->applications, file, (uint32_t)t->n_applications, &id);
    if (r < 0)
        return r;
    if (id == t->n_applications)
        t->applications[t->n_applications++] = (TraceApplication){.file = file};
    *ret = id;
    return 0;
}

static bool lifetime_is_valid(const TraceLifetime *l)
{
    return l->start <= TRACE_NUMBER_MAX && l->end >= l->start &&
           (l->end <= TRACE_NUMBER_MAX || l->end == USEC_INFINITY);
}

int trace_add_lifetime(Trace *t, const TraceLifetime *l)
{
    int r;

    if (l->application >= t->n_applications || !lifetime_is_valid(l))
        return -EINVAL;
    if (t->n_lifetimes >= TRACE_LIFETIMES_MAX)
        return -E2BIG;
    r = grow_array(&t->lifetimes, &t->allocated_lifetimes, t->n_lifetimes + 1,
                   sizeof(TraceLifetime));
    if (r < 0)
        return r;
    t->lifetimes[t->n_lifetimes++] = *l;
    return 0;
}

int trace_add_access(Trace *t, const TraceAccess *a)
{
    int r;

    if (a->file >= t->n_files || (int)a->kind < 0 || a->kind >= _ACCESS_KIND_MAX ||
        (a->application != TRACE_NONE && a->application >= t->n_applications) ||
        a->at > TRACE_NUMBER_MAX ||
        (t->n_accesses > 0 && a->at < t->accesses[t->n_accesses - 1].at))
        return -EINVAL;
    if (t->n_accesses >= TRACE_ACCESSES_MAX)
        return -E2BIG;
    r = grow_array(&t->accesses, &t->allocated_accesses, t->n_accesses + 1, sizeof(TraceAccess));
    if (r < 0)
        return r;
    t->accesses[t->n_accesses++] = *a;
    return 0;
}

/* Returns true if the row `x` comes after the row `last`. */
static bool touched_rises(const TraceTouched *last, const TraceTouched *x)
{
    return last->application != x->application ? last->application < x->application
                                               : last->file < x->file;
}

static bool touched_is_valid(const Trace *t, const TraceTouched *x)
{
    return x->application < t->n_applications && x->file < t->n_files && x->ranges.n > 0 &&
           !t->files[x->file].directory;
}

int trace_add_touched(Trace *t, uint32_t application, uint32_t file, RangeSet *ranges)
{
    const TraceTouched x = {application, file, *ranges};
    int r;

    if (!touched_is_valid(t, &x) ||
        (t->n_touched > 0 && !touched_rises(&t->touched[t->n_touched - 1], &x)))
        return -EINVAL;
    if (t->n_touched >= TRACE_TOUCHED_MAX)
        return -E2BIG;
    r = grow_array(&t->touched, &t->allocated_touched, t->n_touched + 1, sizeof(TraceTouched));
    if (r < 0)
        return r;
    t->touched[t->n_touched++] = x;
    *ranges = (RangeSet){0};
    return 0;
}

int trace_merge_touched(Trace *t, TraceTouched *rows, size_t n)
{
    size_t i = 0, k = 0, n_all = 0;
    TraceTouched *all;

    if (n == 0)
        return 0;
    for (size_t j = 0; j < n; j++)
        if (!touched_is_valid(t, &rows[j]) || (j > 0 && touched_rises(&rows[j], &rows[j - 1])))
            return -EINVAL;
    if (n > TRACE_TOUCHED_MAX || t->n_touched > TRACE_TOUCHED_MAX - n)
        return -E2BIG;
    all = reallocarray(NULL, t->n_touched + n, sizeof(TraceTouched));
    if (!all)
        return -ENOMEM;
    while (i < t->n_touched || k < n) {
        bool old = k == n || (i < t->n_touched && !touched_rises(&rows[k], &t->touched[i]));
        TraceTouched *x = old ? &t->touched[i++] : &rows[k++];

        if (n_all > 0 && !touched_rises(&all[n_all - 1], x))
            continue; /* there is such a row */
        all[n_all++] = *x;
        x->ranges = (RangeSet){0};
    }
    free(t->touched);
    t->touched = all;
    t->allocated_touched = t->n_touched + n;
    t->n_touched = n_all;
    return 0;
}

static bool needed_rises(const TraceNeeded *last, const TraceNeeded *x)
{
    return last->application != x->application ? last->application < x->application
                                               : last->volume < x->volume;
}

static bool needed_is_valid(const Trace *t, const TraceNeeded *x)
{
    return x->application < t->n_applications && x->volume < t->n_volumes && x->ranges.n > 0;
}

int trace_add_needed(Trace *t, uint32_t application, uint32_t volume, RangeSet *ranges)
{
    const TraceNeeded x = {application, volume, *ranges};
    int r;

    if (!needed_is_valid(t, &x) ||
        (t->n_needed > 0 && !needed_rises(&t->needed[t->n_needed - 1], &x)))
        return -EINVAL;
    if (t->n_needed >= TRACE_NEEDED_MAX)
        return -E2BIG;
    r = grow_array(&t->needed, &t->allocated_needed, t->n_needed + 1, sizeof(TraceNeeded));
    if (r < 0)
        return r;
    t->needed[t->n_needed++] = x;
    *ranges = (RangeSet){0};
    return 0;
}

int trace_add_left_out(Trace *t, const TraceLeftOut *l)
{
    int r;

    if (t->n_left_out > 0 && l->uid <= t->left_out[t->n_left_out - 1].uid)
        return -EINVAL;
    if (t->n_left_out >= TRACE_LEFT_OUT_MAX)
        return -E2BIG;
    r = grow_array(&t->left_out, &t->allocated_left_out, t->n_left_out + 1, sizeof(TraceLeftOut));
    if (r >= 0)
        t->left_out[t->n_left_out++] = *l;
    return r;
}

char *trace_describe_left_out(const Trace *t)
{
    const size_t shown = MIN(t->n_left_out, (size_t)4);
    char text[512];
    size_t at = 0;

    if (t->n_left_out == 0)
        return NULL;
    for (size_t i = 0; i < shown; i++) {
        const TraceLeftOut *l = &t->left_out[i];
        char uid[16] = "unknown";

        if (l->uid != UID_INVALID)
            snprintf(uid, sizeof(uid), "%u", l->uid);
        at += (size_t)snprintf(
                text + at, sizeof(text) - at,
                "%sUID %s: %llu opens, %llu files, incomplete page ranges in %llu files",
                i > 0 ? "; " : "", uid, (unsigned long long)l->n_events,
                (unsigned long long)l->n_files, (unsigned long long)l->n_cut);
    }
    if (t->n_left_out > shown)
        snprintf(text + at, sizeof(text) - at, "; %zu more users", t->n_left_out - shown);
    return strdup(text);
}

int trace_format_path(const Trace *t, uint32_t path, char *buf, size_t size)
{
    size_t at = size;

    if (path >= t->n_paths)
        return -EINVAL;
    if (size < 2)
        return -ENAMETOOLONG;
    buf[--at] = 0;
    if (path == 0)
        buf[--at] = '/';
    /* A child has a higher number than its parent, so the loop ends. */
    for (uint32_t i = path; i != 0; i = t->paths[i].parent) {
        size_t l = strlen(t->paths[i].name);

        if (at < l + 1)
            return -ENAMETOOLONG;
        at -= l;
        memcpy(buf + at, t->paths[i].name, l);
        buf[--at] = '/';
    }
    memmove(buf, buf + at, size - at);
    return 0;
}

static bool name_is_valid(const char *name)
{
    return name[0] && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !strchr(name, '/') &&
           strlen(name) <= NAME_MAX;
}

/* Checks the names, that each parent comes before its children, that every path fits
 * TRACE_PATH_MAX, and that the paths of all files fit TRACE_PATH_BYTES_MAX. */
static int validate_paths(const Trace *t)
{
    _cleanup_free_ uint16_t *length = calloc(t->n_paths, sizeof(uint16_t));
    uint64_t path_bytes = 0;

    if (!length)
        return -ENOMEM;
    if (t->paths[0].parent != 0 || !t->paths[0].name || t->paths[0].name[0])
        return -EBADMSG;
    for (size_t i = 1; i < t->n_paths; i++) {
        const TracePath *p = &t->paths[i];
        size_t l;

        if (p->parent >= i || !p->name || !name_is_valid(p->name))
            return -EBADMSG;
        l = length[p->parent] + 1 + strlen(p->name);
        if (l >= TRACE_PATH_MAX)
            return -EBADMSG;
        length[i] = (uint16_t)l;
    }
    for (size_t i = 0; i < t->n_files; i++) {
        if (t->files[i].path >= t->n_paths)
            return -EBADMSG;
        path_bytes += MAX(length[t->files[i].path], 1) + 1U;
    }
    return path_bytes <= TRACE_PATH_BYTES_MAX ? 0 : -EBADMSG;
}

static bool ranges_are_valid(const RangeSet *s)
{
    return range_set_valid(s) && (s->n == 0 || range_end(&s->ranges[s->n - 1]) <= TRACE_NUMBER_MAX);
}

static bool volume_is_valid(const TraceVolume *v)
{
    return v->uuid && v->fstype && v->subvolume && v->mountpoint && v->device && v->scheduler &&
           ranges_are_valid(&v->metadata) && v->size_bytes <= TRACE_NUMBER_MAX &&
           (int)v->device_class >= 0 && v->device_class < _DEVICE_CLASS_MAX &&
           (int)v->metadata_source >= 0 && v->metadata_source < _METADATA_SOURCE_MAX;
}

static int validate_tables(const Trace *t)
{
    uint64_t n_ranges = 0;
    int r;

    if (t->n_paths == 0 || t->n_paths > TRACE_PATHS_MAX || t->n_files > TRACE_FILES_MAX ||
        t->n_volumes > TRACE_VOLUMES_MAX || t->n_accesses > TRACE_ACCESSES_MAX ||
        t->n_lifetimes > TRACE_LIFETIMES_MAX || t->n_applications > TRACE_FILES_MAX)
        return -EBADMSG;
    r = validate_paths(t);
    if (r < 0)
        return r;
    for (size_t i = 0; i < t->n_volumes; i++)
        if (!volume_is_valid(&t->volumes[i]))
            return -EBADMSG;
    for (size_t i = 0; i < t->n_files; i++) {
        const TraceFile *f = &t->files[i];

        if ((f->volume != TRACE_NONE && f->volume >= t->n_volumes) ||
            f->size_bytes > TRACE_NUMBER_MAX || !ranges_are_valid(&f->resident) ||
            (f->directory && f->resident.n > 0))
            return -EBADMSG;
        n_ranges += f->resident.n;
    }
    if (n_ranges > TRACE_RANGES_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < t->n_applications; i++)
        if (t->applications[i].file >= t->n_files)
            return -EBADMSG;
    return 0;
}

static int validate_touched(const Trace *t)
{
    uint64_t n_ranges = 0;

    if (t->n_touched > TRACE_TOUCHED_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < t->n_touched; i++) {
        const TraceTouched *x = &t->touched[i];

        if (!touched_is_valid(t, x) || !ranges_are_valid(&x->ranges) ||
            (i > 0 && !touched_rises(x - 1, x)))
            return -EBADMSG;
        n_ranges += x->ranges.n;
    }
    return n_ranges <= TRACE_RANGES_MAX ? 0 : -EBADMSG;
}

static int validate_needed(const Trace *t)
{
    uint64_t n_ranges = 0;

    if (t->n_needed > TRACE_NEEDED_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < t->n_needed; i++) {
        const TraceNeeded *x = &t->needed[i];

        if (!needed_is_valid(t, x) || !ranges_are_valid(&x->ranges) ||
            (i > 0 && !needed_rises(x - 1, x)))
            return -EBADMSG;
        n_ranges += x->ranges.n;
    }
    return n_ranges <= TRACE_RANGES_MAX ? 0 : -EBADMSG;
}

static int validate_left_out(const Trace *t)
{
    if (t->n_left_out > TRACE_LEFT_OUT_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < t->n_left_out; i++) {
        const TraceLeftOut *l = &t->left_out[i];

        if ((i > 0 && l->uid <= l[-1].uid) || l->n_events > TRACE_NUMBER_MAX ||
            l->n_files > TRACE_NUMBER_MAX || l->n_cut > TRACE_NUMBER_MAX)
            return -EBADMSG;
    }
    return 0;
}

static int validate_head(const Trace *t)
{
    const uint64_t numbers[] = {t->start_realtime, t->start_boottime,        t->duration,
                                t->n_unresolved,   t->n_unknown_application, t->n_own,
                                t->n_overflows};

    for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
        if (numbers[i] > TRACE_NUMBER_MAX)
            return -EBADMSG;
    if ((int)t->stage < 0 || t->stage >= _STAGE_MAX || (int)t->policy < 0 ||
        t->policy >= _POLICY_MAX || (int)t->process_source < 0 ||
        t->process_source >= _PROCESS_SOURCE_MAX || !t->boot_id || !t->kernel || !t->distribution)
        return -EBADMSG;
    return 0;
}

/* Checks the events of the stage. The tables were checked before. */
static int validate_events(const Trace *t)
{
    usec_t last = 0;

    for (size_t i = 0; i < t->n_lifetimes; i++)
        if (t->lifetimes[i].application >= t->n_applications ||
            !lifetime_is_valid(&t->lifetimes[i]))
            return -EBADMSG;
    for (size_t i = 0; i < t->n_accesses; i++) {
        const TraceAccess *a = &t->accesses[i];

        if (a->file >= t->n_files || (int)a->kind < 0 || a->kind >= _ACCESS_KIND_MAX ||
            a->at < last || a->at > TRACE_NUMBER_MAX ||
            (a->application != TRACE_NONE && a->application >= t->n_applications))
            return -EBADMSG;
        last = a->at;
    }
    return 0;
}

int trace_validate(const Trace *t)
{
    int r = validate_head(t);

    if (r >= 0)
        r = validate_tables(t);
    if (r >= 0)
        r = validate_events(t);
    if (r >= 0)
        r = validate_touched(t);
    if (r >= 0)
        r = validate_needed(t);
    if (!trace_samples_valid(t) || t->replay.end < t->replay.start)
        return -EBADMSG;
    return r < 0 ? r : validate_left_out(t);
}

static const char *const metadata_source_table[_METADATA_SOURCE_MAX] = {
        [METADATA_SOURCE_NONE] = "none",
        [METADATA_SOURCE_CACHESTAT] = "cachestat",
        [METADATA_SOURCE_DERIVED] = "derived",
};

static const char *const process_source_table[_PROCESS_SOURCE_MAX] = {
        [PROCESS_SOURCE_NONE] = "none",
        [PROCESS_SOURCE_PROC] = "proc",
        [PROCESS_SOURCE_CONNECTOR] = "connector",
};

const char *metadata_source_to_string(MetadataSource s)
{
    return (int)s >= 0 && s < _METADATA_SOURCE_MAX ? metadata_source_table[s] : NULL;
}

MetadataSource metadata_source_from_string(const char *s)
{
    return (MetadataSource)string_table_lookup(metadata_source_table, _METADATA_SOURCE_MAX, s);
}

const char *process_source_to_string(ProcessSource s)
{
    return (int)s >= 0 && s < _PROCESS_SOURCE_MAX ? process_source_table[s] : NULL;
}

ProcessSource process_source_from_string(const char *s)
{
    return (ProcessSource)string_table_lookup(process_source_table, _PROCESS_SOURCE_MAX, s);
}

/* A check of a clean filesystem takes less time. */
#define FSCK_MIN (10 * USEC_PER_SEC)

bool trace_has_fsck(const Trace *t)
{
    for (size_t i = 0; i < t->n_lifetimes; i++) {
        const TraceLifetime *l = &t->lifetimes[i];
        const TraceFile *f = &t->files[t->applications[l->application].file];
        const char *name = t->paths[f->path].name;

        if ((strcmp(name, "e2fsck") == 0 || strncmp(name, "fsck.", 5) == 0 ||
             strcmp(name, "xfs_repair") == 0) &&
            MIN(l->end, t->duration) >= l->start + FSCK_MIN)
            return true;
    }
    return false;
}
