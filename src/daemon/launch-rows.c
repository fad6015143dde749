/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/launch-rows.h"

#include "state/launch-packs.h"

#include <stdlib.h>
#include <string.h>

/* A file of the trace, as a launch set identifies it. */
typedef struct FileKey {
    uint32_t volume, file; /* of the trace */
    uint64_t inode;
} FileKey;

/* The application of the trace that a start belongs to. */
typedef struct Start {
    uint32_t application;
    LaunchUse *use;
} Start;

typedef struct Rows {
    Trace *t;
    FileKey *keys; /* of the regular files, by volume, inode and file */
    size_t n_keys;
    Start starts[LAUNCH_USES_MAX]; /* by application */
    size_t n_starts;
    TraceTouched *touched; /* rows of `touched`; they own their ranges */
    size_t n_touched, allocated_touched;
} Rows;

static int compare_keys(const void *a, const void *b)
{
    const FileKey *x = a, *y = b;

    if (x->volume != y->volume)
        return x->volume < y->volume ? -1 : 1;
    if (x->inode != y->inode)
        return x->inode < y->inode ? -1 : 1;
    return x->file < y->file ? -1 : x->file > y->file;
}

static int compare_starts(const void *a, const void *b)
{
    const Start *x = a, *y = b;

    return x->application < y->application ? -1 : x->application > y->application;
}

static int compare_touched(const void *a, const void *b)
{
    const TraceTouched *x = a, *y = b;

    if (x->application != y->application)
        return x->application < y->application ? -1 : 1;
    return x->file < y->file ? -1 : x->file > y->file;
}

static int list_files(Rows *x)
{
    const Trace *t = x->t;

    x->keys = calloc(t->n_files + 1, sizeof(FileKey));
    if (!x->keys)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->n_files; i++)
        if (!t->files[i].directory && t->files[i].volume != TRACE_NONE)
            x->keys[x->n_keys++] = (FileKey){t->files[i].volume, i, t->files[i].inode};
    qsort(x->keys, x->n_keys, sizeof(FileKey), compare_keys);
    return 0;
}

/* Returns the application of the trace with that hash of its path, or TRACE_NONE. */
static uint32_t find_application(const Trace *t, uint64_t hash)
{
    char path[TRACE_PATH_MAX];

    for (uint32_t i = 0; i < t->n_applications; i++)
        if (trace_format_path(t, t->files[t->applications[i].file].path, path, sizeof(path)) >= 0 &&
            launch_pack_hash(path) == hash)
            return i;
    return TRACE_NONE;
}

/* Returns true if the ranges of the start, with those of the user's listed starts, are within the
 * user's limit. */
static bool fits_share(const Rows *x, const LaunchUse *u)
{
    size_t n = u->n_ranges;

    for (size_t i = 0; i < x->n_starts; i++)
        if (x->starts[i].use->key.uid == u->key.uid)
            n += x->starts[i].use->n_ranges;
    return n <= TRACE_RECORD_USER_RANGES_MAX;
}

/* Lists the starts of the trace's user, one for each application, by application. */
static void list_starts(Rows *x, LaunchUses *uses)
{
    for (size_t i = 0; i < uses->n; i++) {
        LaunchUse *u = &uses->items[i];
        uint32_t application = find_application(x->t, u->key.application);
        bool known = application == TRACE_NONE;

        for (size_t k = 0; k < x->n_starts; k++)
            known = known || x->starts[k].application == application;
        if (!known && (x->t->uid == UID_INVALID || x->t->uid == u->key.uid) && fits_share(x, u))
            x->starts[x->n_starts++] = (Start){application, u};
    }
    qsort(x->starts, x->n_starts, sizeof(Start), compare_starts);
}

static uint32_t find_volume(const Trace *t, const char *uuid)
{
    for (uint32_t i = 0; i < t->n_volumes; i++)
        if (strcmp(t->volumes[i].uuid, uuid) == 0)
            return i;
    return TRACE_NONE;
}

/* Returns the only file of the trace with that inode, or TRACE_NONE. */
static uint32_t find_file(const Rows *x, uint32_t volume, uint64_t inode)
{
    size_t lo = 0, hi = x->n_keys;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const FileKey *k = &x->keys[mid];

        if (k->volume < volume || (k->volume == volume && k->inode < inode))
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == x->n_keys || x->keys[lo].volume != volume || x->keys[lo].inode != inode)
        return TRACE_NONE;
    if (lo + 1 < x->n_keys && x->keys[lo + 1].volume == volume && x->keys[lo + 1].inode == inode)
        return TRACE_NONE; /* several names */
    return x->keys[lo].file;
}

/* Adds the metadata of one start, in the order of the trace's volumes. */
static int add_metadata(Rows *x, const Start *s)
{
    for (uint32_t v = 0; v < x->t->n_volumes; v++)
        for (size_t i = 0; i < s->use->n; i++) {
            LaunchNeed *n = &s->use->needs[i];

            if (n->inode != 0 || n->ranges.n == 0 || find_volume(x->t, n->uuid) != v)
                continue;
            CHECK(trace_add_needed(x->t, s->application, v, &n->ranges));
            break;
        }
    return 0;
}

/* Lists the pages of one start's files. */
static int list_touched(Rows *x, const Start *s)
{
    for (size_t i = 0; i < s->use->n; i++) {
        LaunchNeed *n = &s->use->needs[i];
        uint32_t volume = find_volume(x->t, n->uuid);
        uint32_t file = n->inode != 0 && n->ranges.n > 0 && volume != TRACE_NONE
                                ? find_file(x, volume, n->inode)
                                : TRACE_NONE;

        if (file == TRACE_NONE)
            continue;
        CHECK(grow_array(&x->touched, &x->allocated_touched, x->n_touched + 1,
                         sizeof(TraceTouched)));
        x->touched[x->n_touched++] = (TraceTouched){s->application, file, n->ranges};
        n->ranges = (RangeSet){0};
    }
    return 0;
}

/* Adds the pages of all starts' files at once, because inserting each row would take minutes if a
 * user has many. */
static int add_files(Rows *x)
{
    for (size_t i = 0; i < x->n_starts; i++)
        CHECK(list_touched(x, &x->starts[i]));
    if (x->n_touched > 0)
        qsort(x->touched, x->n_touched, sizeof(TraceTouched), compare_touched);
    return trace_merge_touched(x->t, x->touched, x->n_touched);
}

int launch_rows_add(LaunchUses *uses, Trace *t)
{
    Rows x = {.t = t};
    int r = uses->n > 0 ? list_files(&x) : 0;

    if (r >= 0)
        list_starts(&x, uses);
    for (size_t i = 0; r >= 0 && i < x.n_starts; i++)
        r = add_metadata(&x, &x.starts[i]);
    if (r >= 0)
        r = add_files(&x);
    for (size_t i = 0; i < x.n_touched; i++)
        range_set_done(&x.touched[i].ranges);
    free(x.touched);
    free(x.keys);
    return r;
}
