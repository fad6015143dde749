/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "measure/pack-usage.h"

#include "base/macros.h"

#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* A file of the pack. */
typedef struct PackedFile {
    UT_hash_handle hh; /* hashed by path */
    RangeSet ranges;   /* of its data in the pack */
    unsigned class;    /* of the predicted probability of the file */
    bool used, oom;
    char path[];
} PackedFile;

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(elt) ((elt)->oom = true)

/* Who opened a file. */
typedef enum Opened {
    OPENED_NOT,
    OPENED_BY_OTHERS, /* only programs whose misses do not count */
    OPENED,
} Opened;

typedef struct Comparison {
    const Opened *opened; /* by the index of the trace; NULL: all files are OPENED */
    PackedFile *by_path;
    PackedFile **files; /* by the index of the pack; NULL: a directory, or a path that an earlier
                         * file has */
    size_t n;
    bool per_file;
    file_usage_t report;
    void *arg;
    PackUsage sum;
} Comparison;

static void comparison_done(Comparison *c)
{
    PackedFile *f, *next;

    HASH_ITER (hh, c->by_path, f, next) {
        HASH_DEL(c->by_path, f);
        range_set_done(&f->ranges);
        free(f);
    }
    free(c->files);
}

static int add_file(Comparison *c, const char *mountpoint, const char *name, PackedFile **ret)
{
    size_t n = strlen(mountpoint) + strlen(name) + 2;
    PackedFile *f, *same;

    f = calloc(1, sizeof(*f) + n);
    if (!f)
        return -ENOMEM;
    snprintf(f->path, n, "%s/%s", strcmp(mountpoint, "/") == 0 ? "" : mountpoint, name);
    HASH_FIND_STR(c->by_path, f->path, same);
    if (same) {
        free(f);
        *ret = NULL;
        return 0;
    }
    HASH_ADD_STR(c->by_path, path, f);
    if (f->oom) {
        free(f);
        return -ENOMEM;
    }
    *ret = f;
    return 0;
}

static int add_volume(Comparison *c, const Pack *p, const PackVolume *v)
{
    int r = 0;

    for (uint32_t k = 0; r >= 0 && k < le32toh(v->n_files); k++) {
        uint32_t i = le32toh(v->first_file) + k;
        const PackFile *f = p->files + i;

        if (!(le16toh(f->flags) & PACK_FILE_DIRECTORY))
            r = add_file(c, pack_string(p, v->mountpoint), pack_string(p, f->path), &c->files[i]);
        if (r >= 0 && c->files[i])
            c->files[i]->class =
                    le16toh(f->probability) * USAGE_CLASSES / (PACK_PROBABILITY_ONE + 1);
    }
    for (uint32_t k = 0; r >= 0 && k < le32toh(v->n_data); k++) {
        const PackData *d = p->data + le32toh(v->first_data) + k;
        PackedFile *f = c->files[le32toh(d->file)];

        if (f)
            r = range_set_insert(&f->ranges, le64toh(d->offset), le64toh(d->length));
    }
    return r;
}

static void count(Comparison *c, FileUse use, const char *path, uint64_t bytes)
{
    uint64_t *const files[_FILE_USE_MAX] = {&c->sum.hit_files, &c->sum.waste_files,
                                            &c->sum.miss_files};
    uint64_t *const sums[_FILE_USE_MAX] = {&c->sum.hit_bytes, &c->sum.waste_bytes,
                                           &c->sum.miss_bytes};

    if (bytes == 0)
        return;
    *files[use] += 1;
    *sums[use] += bytes;
    if (c->report)
        c->report(c->arg, &(FileUsage){path, use, bytes});
}

/* Compares a file that the session used with the pack's file of the same path. */
static int compare_used(Comparison *c, PackedFile *packed, const TraceFile *f, Opened opened,
                        const char *path)
{
    _cleanup_range_set_ RangeSet both = {0}, missed = {0};
    int r = range_set_subtract(&f->resident, &packed->ranges, &missed);

    if (r < 0)
        return r;
    packed->used = true;
    if (opened == OPENED)
        count(c, FILE_USE_MISS, path, range_set_total(&missed));
    if (c->per_file) {
        count(c, FILE_USE_HIT, path, range_set_total(&packed->ranges));
        return 0;
    }
    r = range_set_intersect(&f->resident, &packed->ranges, &both);
    if (r < 0)
        return r;
    count(c, FILE_USE_HIT, path, range_set_total(&both));
    count(c, FILE_USE_WASTE, path, range_set_total(&packed->ranges) - range_set_total(&both));
    return 0;
}

static int compare_file(Comparison *c, const Trace *t, const TraceFile *f, Opened opened)
{
    char path[TRACE_PATH_MAX];
    PackedFile *packed;
    int r = trace_format_path(t, f->path, path, sizeof(path));

    if (r < 0)
        return 0; /* no pack has such a path */
    HASH_FIND_STR(c->by_path, path, packed);
    if (packed)
        return compare_used(c, packed, f, opened, path);
    if (opened == OPENED)
        count(c, FILE_USE_MISS, path, range_set_total(&f->resident));
    return 0;
}

static int compare(Comparison *c, const Pack *p, const Trace *t, PackUsage *ret)
{
    int r = 0;

    c->n = le32toh(p->header->n_files);
    c->files = calloc(MAX(c->n, (size_t)1), sizeof(PackedFile *));
    if (!c->files)
        return -ENOMEM;
    for (uint32_t i = 0; r >= 0 && i < le32toh(p->header->n_volumes); i++)
        r = add_volume(c, p, p->volumes + i);
    for (size_t i = 0; r >= 0 && i < t->n_files; i++) {
        Opened opened = c->opened ? c->opened[i] : OPENED;

        if (!t->files[i].directory && opened != OPENED_NOT)
            r = compare_file(c, t, t->files + i, opened);
    }
    if (r < 0)
        return r;
    for (PackedFile *f = c->by_path; f; f = f->hh.next) {
        c->sum.planned[f->class]++;
        c->sum.opened[f->class] += f->used;
        if (!f->used)
            count(c, FILE_USE_WASTE, f->path, range_set_total(&f->ranges));
    }
    c->sum.source = c->per_file ? USAGE_PER_FILE : USAGE_PER_PAGE;
    *ret = c->sum;
    return 0;
}

int pack_usage_compare(const Pack *p, const Trace *t, file_usage_t report, void *arg,
                       PackUsage *ret)
{
    _cleanup_(comparison_done) Comparison c = {
            .per_file = (t->flags & TRACE_REPLAYED) != 0,
            .report = report,
            .arg = arg,
    };

    return compare(&c, p, t, ret);
}

int pack_usage_compare_start(const Pack *p, const Trace *t, uint32_t application, usec_t start,
                             usec_t took, file_usage_t report, void *arg, PackUsage *ret)
{
    _cleanup_free_ Opened *opened = calloc(t->n_files + 1, sizeof(*opened));
    _cleanup_(comparison_done) Comparison c = {
            .opened = opened,
            .per_file = true,
            .report = report,
            .arg = arg,
    };

    if (!opened)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_accesses; i++) {
        const TraceAccess *a = &t->accesses[i];

        if (a->at < start || a->at - start > took)
            continue;
        if (a->application == application)
            opened[a->file] = OPENED;
        else if (opened[a->file] == OPENED_NOT)
            opened[a->file] = OPENED_BY_OTHERS;
    }
    return compare(&c, p, t, ret);
}
