/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A trace in words, or whole as JSON. */

#include "cli/show.h"

#include <inttypes.h>
#include <string.h>

/* What the accesses say of one file or application. */
typedef struct Use {
    uint32_t index;
    usec_t first;         /* USEC_INFINITY: no access */
    uint32_t n;           /* accesses */
    uint32_t files;       /* of an application: different ones */
    uint32_t last;        /* scratch */
    uint32_t application; /* of a file: whose access was the first */
    uint64_t bytes;       /* resident */
} Use;

static int by_first_use(const void *a, const void *b)
{
    const Use *x = a, *y = b;

    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static int by_bytes(const void *a, const void *b)
{
    const Use *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return by_first_use(a, b);
}

static int by_accesses(const void *a, const void *b)
{
    const Use *x = a, *y = b;

    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return by_first_use(a, b);
}

static int collect_files(const Trace *t, Use **ret)
{
    Use *u = calloc(MAX(t->n_files, (size_t)1), sizeof(Use));

    if (!u)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_files; i++)
        u[i] = (Use){.index = (uint32_t)i,
                     .first = USEC_INFINITY,
                     .application = TRACE_NONE,
                     .bytes = range_set_total(&t->files[i].resident)};
    for (size_t i = 0; i < t->n_accesses; i++) {
        const TraceAccess *a = t->accesses + i;
        Use *f = u + a->file;

        if (f->n++ == 0) {
            f->first = a->at;
            f->application = a->application;
        }
    }
    *ret = u;
    return 0;
}

static int compare_pairs(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static int collect_applications(const Trace *t, Use **ret)
{
    _cleanup_free_ uint64_t *pairs = calloc(MAX(t->n_accesses, (size_t)1), sizeof(uint64_t));
    Use *u = calloc(MAX(t->n_applications, (size_t)1), sizeof(Use));
    size_t n = 0;

    if (!u || !pairs) {
        free(u);
        return -ENOMEM;
    }
    for (size_t i = 0; i < t->n_applications; i++)
        u[i] = (Use){.index = (uint32_t)i, .first = USEC_INFINITY};
    for (size_t i = 0; i < t->n_accesses; i++) {
        const TraceAccess *a = t->accesses + i;

        if (a->application == TRACE_NONE)
            continue;
        if (u[a->application].n++ == 0)
            u[a->application].first = a->at;
        pairs[n++] = (uint64_t)a->application << 32 | a->file;
    }
    /* Files that several applications used count with each of them. */
    qsort(pairs, n, sizeof(uint64_t), compare_pairs);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || pairs[i] != pairs[i - 1]) {
            Use *a = u + (pairs[i] >> 32);

            a->files++;
            a->bytes += range_set_total(&t->files[(uint32_t)pairs[i]].resident);
        }
    *ret = u;
    return 0;
}

static void file_path(const Trace *t, uint32_t file, char *buf, size_t size)
{
    if (trace_format_path(t, t->files[file].path, buf, size) < 0)
        snprintf(buf, size, "?");
}

/* The file an application is, or NULL if it is not known. */
static const char *application_path(const Trace *t, uint32_t application, char *buf, size_t size)
{
    if (application == TRACE_NONE)
        return NULL;
    file_path(t, t->applications[application].file, buf, size);
    return buf;
}

/* --- summary ---------------------------------------------------------------------------------- */

static const struct {
    unsigned flag;
    const char *word;
} flag_words[] = {
        {TRACE_INCOMPLETE, "incomplete"},
        {TRACE_EXACT, "exact"},
        {TRACE_REPLAYED, "replayed"},
        {TRACE_CONTROL, "control session"},
        {TRACE_SECOND_LOGIN, "second login"},
        {TRACE_SOFT_REBOOT, "soft reboot"},
        {TRACE_OFFLINE_UPDATE, "offline update"},
        {TRACE_FSCK, "fsck"},
        {TRACE_RESIDENCY_OFF, "residency off"},
        {TRACE_FOLLOWED, "followed"},
};

static const char *flags_text(unsigned flags, char *buf, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < ELEMENTSOF(flag_words); i++)
        if (flags & flag_words[i].flag && n < size)
            n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? ", " : "", flag_words[i].word);
    return n ? buf : NULL;
}

static json_object *flags_to_json(unsigned flags)
{
    json_object *a = json_object_new_array();

    for (size_t i = 0; a && i < ELEMENTSOF(flag_words); i++)
        if (flags & flag_words[i].flag)
            json_object_array_add(a, json_object_new_string(flag_words[i].word));
    return a;
}

static Table *summary_table(const Trace *t, const char *path)
{
    uint64_t resident = 0, metadata = 0, directories = 0;
    Table *s = table_new();
    char flags[256];

    for (size_t i = 0; i < t->n_files; i++) {
        resident += range_set_total(&t->files[i].resident);
        directories += t->files[i].directory;
    }
    for (size_t i = 0; i < t->n_volumes; i++)
        metadata += range_set_total(&t->volumes[i].metadata);

    table_column(s, "Trace", "file", CELL_PATH);
    table_column(s, "Stage", "stage", CELL_STRING);
    table_column(s, "Recorded", "start_realtime_usec", CELL_REALTIME);
    table_column(s, "Duration", "duration_usec", CELL_TIMESPAN);
    table_column(s, "User", "uid", CELL_COUNT);
    table_column(s, "Marked", "flags", CELL_STRING);
    table_column(s, "Policy", "policy", CELL_STRING);
    table_column(s, "System", "distribution", CELL_STRING);
    table_column(s, "Kernel", "kernel", CELL_STRING);
    table_column(s, "Applications by", "process_source", CELL_STRING);
    table_column(s, "Accesses", "n_accesses", CELL_COUNT);
    table_column(s, "Files", "n_files", CELL_COUNT);
    table_column(s, "Directories", "n_directories", CELL_COUNT);
    table_column(s, "Read", "resident_bytes", CELL_BYTES);
    table_column(s, "Metadata", "metadata_bytes", CELL_BYTES);
    table_column(s, "Unknown", "n_unknown_application", CELL_COUNT);
    table_row(s, path, stage_to_string(t->stage), t->start_realtime, t->duration,
              t->uid == UID_INVALID ? COUNT_UNKNOWN : (uint64_t)t->uid,
              flags_text(t->flags, flags, sizeof(flags)), policy_to_string(t->policy),
              *t->distribution ? t->distribution : NULL, *t->kernel ? t->kernel : NULL,
              process_source_to_string(t->process_source), (uint64_t)t->n_accesses,
              (uint64_t)t->n_files - directories, directories, resident, metadata,
              t->n_unknown_application);
    return s;
}

static Table *volume_table(const Trace *t)
{
    Table *s = table_new();

    table_column(s, "MOUNTED AT", "mountpoint", CELL_PATH);
    table_column(s, "TYPE", "fstype", CELL_STRING);
    table_column(s, "DEVICE", "device", CELL_STRING);
    table_column(s, "CLASS", "device_class", CELL_STRING);
    table_column(s, "SCHEDULER", "scheduler", CELL_STRING);
    table_column(s, "METADATA", "metadata_bytes", CELL_BYTES);
    table_column(s, "RANGES", "n_metadata", CELL_COUNT);
    table_column(s, "KNOWN BY", "metadata_source", CELL_STRING);
    for (size_t i = 0; i < t->n_volumes; i++) {
        const TraceVolume *v = t->volumes + i;

        table_row(s, v->mountpoint, v->fstype, v->device, device_class_to_string(v->device_class),
                  *v->scheduler ? v->scheduler : NULL, range_set_total(&v->metadata),
                  (uint64_t)v->metadata.n, metadata_source_to_string(v->metadata_source));
    }
    return s;
}

static Table *application_table(const Trace *t, const Use *uses, uint64_t limit)
{
    Table *s = table_new();
    char path[TRACE_PATH_MAX];

    table_column(s, "APPLICATION", "path", CELL_PATH);
    table_column(s, "FIRST USE", "first_use_usec", CELL_TIMESPAN);
    table_column(s, "ACCESSES", "n_accesses", CELL_COUNT);
    table_column(s, "FILES", "n_files", CELL_COUNT);
    table_column(s, "READ", "resident_bytes", CELL_BYTES);
    for (size_t i = 0; i < t->n_applications && (limit == 0 || i < limit); i++) {
        const Use *u = uses + i;

        table_row(s, application_path(t, u->index, path, sizeof(path)),
                  u->n ? u->first : COUNT_UNKNOWN, (uint64_t)u->n, (uint64_t)u->files, u->bytes);
    }
    return s;
}

static Table *file_table(const Trace *t, const Use *uses, uint64_t limit)
{
    Table *s = table_new();
    char path[TRACE_PATH_MAX];

    table_column(s, "FILE", "path", CELL_PATH);
    table_column(s, "FIRST USE", "first_use_usec", CELL_TIMESPAN);
    table_column(s, "READ", "resident_bytes", CELL_BYTES);
    table_column(s, "OF", "size_bytes", CELL_BYTES);
    for (size_t i = 0; i < t->n_files && (limit == 0 || i < limit); i++) {
        const Use *u = uses + i;

        if (u->bytes == 0 && limit > 0)
            break;
        file_path(t, u->index, path, sizeof(path));
        table_row(s, path, u->n ? u->first : COUNT_UNKNOWN, u->bytes,
                  t->files[u->index].size_bytes);
    }
    return s;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static json_object *ranges_to_json(const RangeSet *s)
{
    json_object *a = json_object_new_array();

    for (size_t i = 0; a && i < s->n; i++) {
        json_object *pair = json_object_new_array_ext(2);

        json_object_array_add(pair, json_object_new_uint64(s->ranges[i].start));
        json_object_array_add(pair, json_object_new_uint64(s->ranges[i].end));
        json_object_array_add(a, pair);
    }
    return a;
}

/* Files in the order of their first use, with everything a reader needs to do its own replay. */
static json_object *files_to_json(const Trace *t, const Use *uses)
{
    json_object *files = json_object_new_array_ext((int)MAX(t->n_files, (size_t)1));
    char path[TRACE_PATH_MAX];

    for (size_t i = 0; i < t->n_files; i++) {
        const TraceFile *f = t->files + uses[i].index;
        json_object *o = json_object_new_object();
        const char *by;

        file_path(t, uses[i].index, path, sizeof(path));
        json_object_object_add(o, "path", output_json_string(path));
        json_object_object_add(o, "directory", json_object_new_boolean(f->directory));
        json_object_object_add(o, "volume",
                               f->volume == TRACE_NONE ? NULL : json_object_new_uint64(f->volume));
        json_object_object_add(o, "inode", json_object_new_uint64(f->inode));
        json_object_object_add(o, "size_bytes", json_object_new_uint64(f->size_bytes));
        json_object_object_add(o, "first_use_usec",
                               uses[i].n ? json_object_new_uint64(uses[i].first) : NULL);
        by = application_path(t, uses[i].application, path, sizeof(path));
        json_object_object_add(o, "application", by ? output_json_string(by) : NULL);
        json_object_object_add(o, "n_accesses", json_object_new_uint64(uses[i].n));
        json_object_object_add(o, "resident", ranges_to_json(&f->resident));
        json_object_array_add(files, o);
    }
    return files;
}

static int trace_json(const Context *c, const Trace *t, const Table *summary, const Table *volumes,
                      const Table *applications, const Use *files)
{
    json_object *o = table_fields_to_json(summary), *v = table_to_json(volumes);

    if (!o || !v) {
        json_object_put(o);
        json_object_put(v);
        return -ENOMEM;
    }
    for (size_t i = 0; i < t->n_volumes; i++) {
        json_object *k = json_object_array_get_idx(v, i);

        json_object_object_add(k, "uuid", json_object_new_string(t->volumes[i].uuid));
        json_object_object_add(k, "subvolume", output_json_string(t->volumes[i].subvolume));
        json_object_object_add(k, "rotational", json_object_new_boolean(t->volumes[i].rotational));
        json_object_object_add(k, "size_bytes", json_object_new_uint64(t->volumes[i].size_bytes));
        json_object_object_add(k, "metadata", ranges_to_json(&t->volumes[i].metadata));
    }
    json_object_object_add(o, "kind", json_object_new_string("trace"));
    json_object_object_add(o, "flags", flags_to_json(t->flags)); /* instead of the text */
    json_object_object_add(o, "boot_id", json_object_new_string(t->boot_id));
    json_object_object_add(o, "n_unresolved", json_object_new_uint64(t->n_unresolved));
    json_object_object_add(o, "n_own", json_object_new_uint64(t->n_own));
    json_object_object_add(o, "n_overflows", json_object_new_uint64(t->n_overflows));
    json_object_object_add(o, "volumes", v);
    json_object_object_add(o, "applications", table_to_json(applications));
    json_object_object_add(o, "files", files_to_json(t, files));
    return output_json(c->json, o);
}

int show_trace(const Context *c, const char *path, const Trace *t, uint64_t limit)
{
    _cleanup_table_ Table *summary = NULL, *volumes = NULL, *applications = NULL, *files = NULL;
    _cleanup_free_ Use *file_uses = NULL, *application_uses = NULL;
    int r;

    r = collect_files(t, &file_uses);
    if (r >= 0)
        r = collect_applications(t, &application_uses);
    if (r < 0)
        return cli_error(r, "%m");

    summary = summary_table(t, path);
    volumes = volume_table(t);
    if (c->json != JSON_OFF) {
        qsort(file_uses, t->n_files, sizeof(Use), by_first_use);
        qsort(application_uses, t->n_applications, sizeof(Use), by_first_use);
        applications = application_table(t, application_uses, 0);
        r = trace_json(c, t, summary, volumes, applications, file_uses);
        return r < 0 ? cli_error(r, "cannot print: %m") : 0;
    }

    qsort(file_uses, t->n_files, sizeof(Use), by_bytes);
    qsort(application_uses, t->n_applications, sizeof(Use), by_accesses);
    applications = application_table(t, application_uses, limit);
    files = file_table(t, file_uses, limit);
    r = table_print_fields(summary);
    if (r == 0)
        r = table_print_section("Volumes", volumes, t->n_volumes);
    if (r == 0)
        r = table_print_section("Applications, the busiest first", applications, t->n_applications);
    if (r == 0)
        r = table_print_section("Files, the largest part read first", files, t->n_files);
    return r < 0 ? cli_error(r, "cannot print: %m") : 0;
}
