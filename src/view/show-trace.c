/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart show TRACE: a summary as text, or all applications, files and metadata ranges of the
 * trace as JSON. */

#include "view/show.h"

#include "base/json-util.h"

#include <string.h>

/* Sums over the accesses to a file, or over the accesses of an application. */
typedef struct Use {
    uint32_t index;
    usec_t first;         /* USEC_INFINITY: no access */
    uint32_t n;           /* accesses */
    uint32_t files;       /* of an application: number of different files */
    uint32_t application; /* of a file: the application of the first access */
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
    /* A file that several applications used counts for each of them. */
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

/* Returns the path of an application, or NULL if the application is unknown. */
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
        {TRACE_CONTROL, "control"},
        {TRACE_SECOND_LOGIN, "second login"},
        {TRACE_SOFT_REBOOT, "soft reboot"},
        {TRACE_OFFLINE_UPDATE, "offline update"},
        {TRACE_FSCK, "fsck"},
        {TRACE_RESIDENCY_OFF, "residency off"},
        {TRACE_FOLLOWED, "followed"},
        {TRACE_LATE, "late"},
        {TRACE_AUTOLOGIN, "automatic login"},
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
            json_add_item(a, json_object_new_string(flag_words[i].word));
    return a;
}

/* --- tables: their first `limit` rows (0: all) ------------------------------------------------ */

/* Returns [[start, end], …] in bytes. */
static json_object *ranges_to_json(const RangeSet *s)
{
    json_object *a = json_object_new_array();

    for (size_t i = 0; a && i < s->n; i++) {
        json_object *pair = json_object_new_array_ext(2);

        json_add_item(pair, json_object_new_uint64(s->ranges[i].offset));
        json_add_item(pair, json_object_new_uint64(range_end(&s->ranges[i])));
        json_add_item(a, pair);
    }
    return a;
}

static Table *volume_table(const Trace *t)
{
    static const Column columns[] = {
            {"MOUNTED AT", "mountpoint", CELL_PATH},
            {"TYPE", "fstype", CELL_STRING},
            {"DEVICE", "device", CELL_STRING},
            {"CLASS", "device_class", CELL_STRING},
            {"SCHEDULER", "scheduler", CELL_STRING},
            {"METADATA", "metadata_bytes", CELL_BYTES},
            {"RANGES", "n_metadata", CELL_COUNT},
            {"KNOWN BY", "metadata_source", CELL_STRING},
            {NULL, "uuid", CELL_STRING},
            {NULL, "subvolume", CELL_STRING},
            {NULL, "rotational", CELL_BOOLEAN},
            {NULL, "size_bytes", CELL_BYTES},
            {NULL, "metadata", CELL_JSON},
            {0},
    };
    Table *s = table_new(columns);

    for (size_t i = 0; i < t->n_volumes; i++) {
        const TraceVolume *v = t->volumes + i;

        table_row(s, v->mountpoint, v->fstype, v->device, device_class_to_string(v->device_class),
                  *v->scheduler ? v->scheduler : NULL, range_set_total(&v->metadata),
                  (uint64_t)v->metadata.n, metadata_source_to_string(v->metadata_source), v->uuid,
                  v->subvolume, (int)v->rotational, v->size_bytes, ranges_to_json(&v->metadata));
    }
    return s;
}

static Table *application_table(const Trace *t, const Use *uses, uint64_t limit)
{
    static const Column columns[] = {
            {"APPLICATION", "path", CELL_PATH},     {"FIRST USE", "first_use_usec", CELL_TIMESPAN},
            {"ACCESSES", "n_accesses", CELL_COUNT}, {"FILES", "n_files", CELL_COUNT},
            {"READ", "resident_bytes", CELL_BYTES}, {0},
    };
    Table *s = table_new(columns);
    char path[TRACE_PATH_MAX];

    for (size_t i = 0; i < t->n_applications && (limit == 0 || i < limit); i++) {
        const Use *u = uses + i;

        table_row(s, application_path(t, u->index, path, sizeof(path)),
                  u->n ? u->first : COUNT_UNKNOWN, (uint64_t)u->n, (uint64_t)u->files, u->bytes);
    }
    table_set_total(s, t->n_applications);
    return s;
}

/* Makes the table of the files, in the order of `uses`. Unless `limit` is 0, the table ends before
 * the first file without resident pages. */
static Table *file_table(const Trace *t, const Use *uses, uint64_t limit)
{
    static const Column columns[] = {
            {"FILE", NULL, CELL_PATH},
            {"FIRST USE", NULL, CELL_TIMESPAN},
            {"READ", NULL, CELL_BYTES},
            {"OF", NULL, CELL_BYTES},
            {0},
    };
    Table *s = table_new(columns);
    char path[TRACE_PATH_MAX];

    for (size_t i = 0; i < t->n_files && (limit == 0 || i < limit); i++) {
        const Use *u = uses + i;

        if (u->bytes == 0 && limit > 0)
            break;
        file_path(t, u->index, path, sizeof(path));
        table_row(s, path, u->n ? u->first : COUNT_UNKNOWN, u->bytes,
                  t->files[u->index].size_bytes);
    }
    table_set_total(s, t->n_files);
    return s;
}

/* Makes the table of all files, with everything that a simulation of replay needs. */
static Table *whole_file_table(const Trace *t, const Use *uses)
{
    static const Column columns[] = {
            {NULL, "path", CELL_PATH},
            {NULL, "directory", CELL_BOOLEAN},
            {NULL, "volume", CELL_COUNT}, /* index in the trace's volumes */
            {NULL, "inode", CELL_COUNT},
            {NULL, "size_bytes", CELL_BYTES},
            {NULL, "first_use_usec", CELL_TIMESPAN},
            {NULL, "application", CELL_PATH}, /* of the first access */
            {NULL, "n_accesses", CELL_COUNT},
            {NULL, "looked_up", CELL_BOOLEAN}, /* and not opened */
            {NULL, "resident", CELL_JSON},
            {0},
    };
    char path[TRACE_PATH_MAX], application[TRACE_PATH_MAX];
    Table *s = table_new(columns);

    for (size_t i = 0; i < t->n_files; i++) {
        const TraceFile *f = t->files + uses[i].index;

        file_path(t, uses[i].index, path, sizeof(path));
        table_row(s, path, (int)f->directory,
                  f->volume == TRACE_NONE ? COUNT_UNKNOWN : (uint64_t)f->volume, f->inode,
                  f->size_bytes, uses[i].n ? uses[i].first : COUNT_UNKNOWN,
                  application_path(t, uses[i].application, application, sizeof(application)),
                  (uint64_t)uses[i].n, (int)f->looked_up, ranges_to_json(&f->resident));
    }
    return s;
}

/* Makes the table of the opens that were left out because a user exceeded the share of one user.
 * Returns NULL if memory runs out, or if nothing was left out and `always` is false. */
static Table *left_out_table(const Trace *t, bool always)
{
    static const Column columns[] = {
            {"USER", "uid", CELL_COUNT},
            {"OPENS", "n_events", CELL_COUNT},
            {"FILES", "n_files", CELL_COUNT},
            {"FILES IN PART", "n_cut", CELL_COUNT},
            {0},
    };
    Table *s = always || t->n_left_out > 0 ? table_new(columns) : NULL;

    for (size_t i = 0; i < t->n_left_out; i++) {
        const TraceLeftOut *l = &t->left_out[i];

        table_row(s, l->uid == UID_INVALID ? COUNT_UNKNOWN : (uint64_t)l->uid, l->n_events,
                  l->n_files, l->n_cut);
    }
    return s;
}

/* Takes ownership of the three tables. */
static Table *trace_table(const Trace *t, const char *path, Table *applications, Table *all_files,
                          Table *largest_files)
{
    static const Column columns[] = {
            {"Trace", "file", CELL_PATH},
            {"Stage", "stage", CELL_STRING},
            {"Recorded", "start_realtime_usec", CELL_REALTIME},
            {"Duration", "duration_usec", CELL_TIMESPAN},
            {"Ready after", "ready_usec", CELL_TIMESPAN},
            {"Waited for I/O", "stalled_usec", CELL_TIMESPAN},
            {"CPU time", "busy_usec", CELL_TIMESPAN},
            {"User", "uid", CELL_COUNT},
            {"Marked", NULL, CELL_STRING},
            {NULL, "flags", CELL_JSON},
            {"Policy", "policy", CELL_STRING},
            {"System", "distribution", CELL_STRING},
            {"Kernel", "kernel", CELL_STRING},
            {"Applications by", "process_source", CELL_STRING},
            {"Accesses", "n_accesses", CELL_COUNT},
            {"Files", "n_files", CELL_COUNT},
            {"Directories", "n_directories", CELL_COUNT},
            {"Read", "resident_bytes", CELL_BYTES},
            {"Metadata", "metadata_bytes", CELL_BYTES},
            {"Unknown", "n_unknown_application", CELL_COUNT},
            {NULL, "kind", CELL_STRING},
            {NULL, "boot_id", CELL_STRING},
            {NULL, "n_unresolved", CELL_COUNT},
            {NULL, "n_own", CELL_COUNT},
            {NULL, "n_overflows", CELL_COUNT},
            {"Left out: more than one user's share", "left_out", CELL_TABLE},
            {"Volumes", "volumes", CELL_TABLE},
            {"Applications, the busiest first", "applications", CELL_TABLE},
            {NULL, "files", CELL_TABLE},
            {"Files, the largest part read first", NULL, CELL_TABLE},
            {0},
    };
    uint64_t resident = 0, metadata = 0, directories = 0;
    Table *s = table_new(columns);
    char flags[256];

    for (size_t i = 0; i < t->n_files; i++) {
        resident += range_set_total(&t->files[i].resident);
        directories += t->files[i].directory;
    }
    for (size_t i = 0; i < t->n_volumes; i++)
        metadata += range_set_total(&t->volumes[i].metadata);
    table_row(s, path, stage_to_string(t->stage), t->start_realtime, t->duration,
              t->timing.ready > 0 ? t->timing.ready : USEC_INFINITY,
              t->timing.ready > 0 ? t->timing.stalled : USEC_INFINITY,
              t->timing.ready > 0 ? t->timing.busy : USEC_INFINITY,
              t->uid == UID_INVALID ? COUNT_UNKNOWN : (uint64_t)t->uid,
              flags_text(t->flags, flags, sizeof(flags)), flags_to_json(t->flags),
              policy_to_string(t->policy), *t->distribution ? t->distribution : NULL,
              *t->kernel ? t->kernel : NULL, process_source_to_string(t->process_source),
              (uint64_t)t->n_accesses, (uint64_t)t->n_files - directories, directories, resident,
              metadata, t->n_unknown_application, "trace", t->boot_id, t->n_unresolved, t->n_own,
              t->n_overflows, left_out_table(t, all_files), volume_table(t), applications,
              all_files, largest_files);
    return s;
}

int show_trace(const Context *c, const char *path, const Trace *t, uint64_t limit)
{
    _cleanup_free_ Use *files = NULL, *applications = NULL;
    bool whole = c->json != JSON_OFF;
    _cleanup_table_ Table *s = NULL;
    int r;

    r = collect_files(t, &files);
    if (r >= 0)
        r = collect_applications(t, &applications);
    if (r < 0)
        return cli_error(r, "%m");
    qsort(files, t->n_files, sizeof(Use), whole ? by_first_use : by_bytes);
    qsort(applications, t->n_applications, sizeof(Use), whole ? by_first_use : by_accesses);
    s = trace_table(t, path, application_table(t, applications, whole ? 0 : limit),
                    whole ? whole_file_table(t, files) : NULL,
                    whole ? NULL : file_table(t, files, limit));
    return cli_print_fields(c, s);
}
