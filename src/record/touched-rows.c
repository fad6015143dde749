/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/touched-rows.h"

#include <stdlib.h>

/* A file of the trace, as /proc/PID/maps identifies it. */
typedef struct FileKey {
    uint64_t dev; /* as in mountinfo */
    uint64_t inode;
    uint32_t file; /* of the trace; TRACE_NONE: several files have this key */
} FileKey;

static int compare_keys(const void *a, const void *b)
{
    const FileKey *x = a, *y = b;

    if (x->dev != y->dev)
        return x->dev < y->dev ? -1 : 1;
    return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* Lists the regular files of the trace by their keys. */
static int list_keys(const Trace *t, const uint64_t *devs, FileKey **ret, size_t *ret_n)
{
    FileKey *keys = calloc(t->n_files + 1, sizeof(FileKey));
    size_t n = 0, kept = 0;

    if (!keys)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->n_files; i++) {
        const TraceFile *f = &t->files[i];

        if (!f->directory && f->inode != 0 && f->volume != TRACE_NONE)
            keys[n++] = (FileKey){devs[f->volume], f->inode, i};
    }
    qsort(keys, n, sizeof(FileKey), compare_keys);
    for (size_t i = 0; i < n; i++)
        if (kept > 0 && compare_keys(&keys[kept - 1], &keys[i]) == 0)
            keys[kept - 1].file = TRACE_NONE;
        else
            keys[kept++] = keys[i];
    *ret = keys;
    *ret_n = kept;
    return 0;
}

/* What one process touched of a file, with rows of the trace. */
typedef struct Found {
    uint32_t application, file;
    const RangeSet *ranges;
} Found;

static int compare_found(const void *a, const void *b)
{
    const Found *x = a, *y = b;

    if (x->application != y->application)
        return x->application < y->application ? -1 : 1;
    return x->file < y->file ? -1 : x->file > y->file;
}

/* Lists what is known of the applications and files of the trace, in the order of its rows. */
static int list_found(const Touched *touched, const uint64_t *devs, const ProcessRun *runs,
                      size_t n_runs, const uint32_t *applications, const Trace *t, Found **ret,
                      size_t *ret_n)
{
    _cleanup_free_ Found *found = calloc(touched->n + 1, sizeof(Found));
    _cleanup_free_ FileKey *keys = NULL;
    size_t n_keys, n = 0;
    int r = found ? list_keys(t, devs, &keys, &n_keys) : -ENOMEM;

    if (r < 0)
        return r;
    for (size_t i = 0; i < touched->n; i++) {
        const TouchedFile *f = &touched->files[i];
        const FileKey wanted = {.dev = f->dev, .inode = f->inode};
        const FileKey *key = bsearch(&wanted, keys, n_keys, sizeof(FileKey), compare_keys);
        size_t run = process_find_serial(runs, n_runs, f->serial);

        if (key && key->file != TRACE_NONE && run < n_runs && runs[run].serial == f->serial &&
            applications[run] < t->n_applications)
            found[n++] = (Found){applications[run], key->file, &f->ranges};
    }
    qsort(found, n, sizeof(Found), compare_found);
    *ret = TAKE_PTR(found);
    *ret_n = n;
    return 0;
}

/* Unites the sets of one file, clips the result to the size of the file, and joins ranges with
 * short gaps between them. */
static int unite(const Found *x, size_t n, uint64_t size_bytes, RangeSet *ret)
{
    Range whole = {0, size_bytes};
    const RangeSet all = {&whole, size_bytes > 0, 1};
    _cleanup_range_set_ RangeSet sum = {0}, clipped = {0};
    int r = 0;

    for (size_t i = 0; r >= 0 && i < n; i++)
        r = range_set_unite(&sum, x[i].ranges);
    if (r >= 0)
        r = range_set_intersect(&sum, &all, &clipped);
    for (size_t i = 0; r >= 0 && i < clipped.n; i++) {
        const Range *c = &clipped.ranges[i];
        uint64_t end = ret->n > 0 ? range_end(&ret->ranges[ret->n - 1]) : 0;
        uint64_t from = ret->n > 0 && c->offset - end <= TOUCHED_JOIN_BYTES ? end : c->offset;

        r = range_set_insert(ret, from, range_end(c) - from);
    }
    return r;
}

int touched_add_rows(const Touched *touched, const uint64_t *devs, const ProcessRun *runs,
                     size_t n_runs, const uint32_t *applications, Trace *t)
{
    _cleanup_free_ Found *found = NULL;
    size_t n;
    int r;

    if (touched->n == 0)
        return 0;
    r = list_found(touched, devs, runs, n_runs, applications, t, &found, &n);
    if (r < 0)
        return r;
    for (size_t i = 0, next; r >= 0 && i < n; i = next) {
        _cleanup_range_set_ RangeSet ranges = {0};

        for (next = i + 1; next < n && compare_found(&found[i], &found[next]) == 0;)
            next++;
        r = unite(&found[i], next - i, t->files[found[i].file].size_bytes, &ranges);
        if (r >= 0 && ranges.n > 0)
            r = trace_add_touched(t, found[i].application, found[i].file, &ranges);
    }
    return r;
}
