/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/refetch-backoff.h"

#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct RefetchBackoff {
    UT_hash_handle hh; /* hashed by path, in the order of `at` */
    size_t bytes;      /* in the first entry: the length of all paths */
    usec_t at;         /* time of the last read that started a delay, or of the last listing */
    usec_t wait;
    RangeSet ranges; /* read since `at`; empty for a directory */
    bool oom;
    char path[];
};

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(elt) ((elt)->oom = true)

RefetchBackoff *refetch_backoff_free(RefetchBackoff *b)
{
    RefetchBackoff *x, *next;

    HASH_ITER (hh, b, x, next) {
        HASH_DEL(b, x);
        range_set_done(&x->ranges);
        free(x);
    }
    return NULL;
}

/* Takes an entry out of the table. */
static void take_out(RefetchBackoff **b, RefetchBackoff *x)
{
    size_t bytes = (*b)->bytes - strlen(x->path);

    HASH_DEL(*b, x);
    if (*b)
        (*b)->bytes = bytes;
}

static void drop(RefetchBackoff **b, RefetchBackoff *x)
{
    take_out(b, x);
    range_set_done(&x->ranges);
    free(x);
}

static bool is_full(const RefetchBackoff *b, size_t size)
{
    return b && (HASH_COUNT(b) >= REFETCH_PATHS_MAX || b->bytes + size > REFETCH_BYTES_MAX);
}

/* Adds the entry at the end of the table. Returns it, or frees it and returns NULL if memory runs
 * out. */
static RefetchBackoff *append(RefetchBackoff **b, RefetchBackoff *x)
{
    size_t bytes = (*b ? (*b)->bytes : 0) + strlen(x->path);

    HASH_ADD_STR(*b, path, x);
    if (x->oom) {
        range_set_done(&x->ranges);
        free(x);
        return NULL;
    }
    (*b)->bytes = bytes;
    return x;
}

/* Begins a delay at `now`. The table is in the order of these times. Returns x, or NULL if memory
 * runs out; x is then freed. */
static RefetchBackoff *begin_delay(RefetchBackoff **b, RefetchBackoff *x, usec_t now)
{
    take_out(b, x);
    x->at = now;
    return append(b, x);
}

/* Adds a path. Returns NULL if there is no room, or if memory runs out. */
static RefetchBackoff *add_path(RefetchBackoff **b, const char *path, usec_t now, usec_t wait)
{
    size_t size = strlen(path) + 1;
    RefetchBackoff *x;

    while (is_full(*b, size) && now >= (*b)->at + (*b)->wait)
        drop(b, *b);
    if (is_full(*b, size))
        return NULL;
    x = calloc(1, sizeof(*x) + size);
    if (!x)
        return NULL;
    memcpy(x->path, path, size);
    x->at = now;
    x->wait = wait;
    return append(b, x);
}

int refetch_backoff_filter(const RefetchBackoff *b, const char *path, usec_t now, RangeSet *missing)
{
    _cleanup_range_set_ RangeSet due = {0};
    const RefetchBackoff *x;
    int r;

    HASH_FIND_STR(b, path, x);
    if (!x || now >= x->at + x->wait)
        return 0;
    r = range_set_subtract(missing, &x->ranges, &due);
    if (r < 0)
        return r;
    range_set_done(missing);
    *missing = due;
    due = (RangeSet){0};
    return 0;
}

int refetch_backoff_note_read(RefetchBackoff **b, const char *path, usec_t now, Range range)
{
    _cleanup_range_set_ RangeSet lost = {0};
    RefetchBackoff *x;
    int r;

    HASH_FIND_STR(*b, path, x);
    if (!x)
        x = add_path(b, path, now, REFETCH_WAIT_MIN_USEC);
    if (!x)
        return -ENOMEM;
    r = range_set_intersect(&(RangeSet){&range, 1, 1}, &x->ranges, &lost);
    if (r < 0)
        return r;
    /* A range that is read for the first time was not lost, so it does not change the delay of its
     * file. Of several lost ranges of a file only the one that is read first changes the delay,
     * because the others are read in the same pass. */
    if (lost.n > 0 && now >= x->at + x->wait) {
        /* A range that stayed in memory for a long time was not read too early. */
        bool soon = now < x->at + 4 * x->wait;

        x->wait = soon ? MIN(2 * x->wait, REFETCH_WAIT_MAX_USEC) : REFETCH_WAIT_MIN_USEC;
        range_set_done(&x->ranges); /* the other ranges stay due until they are read, too */
        x = begin_delay(b, x, now);
        if (!x)
            return -ENOMEM;
    }
    return range_set_insert(&x->ranges, range.offset, range.length);
}

bool refetch_backoff_list_due(RefetchBackoff **b, const char *path, usec_t now,
                              usec_t interval_usec)
{
    RefetchBackoff *x;

    HASH_FIND_STR(*b, path, x);
    if (x && now < x->at + interval_usec)
        return false;
    if (x)
        (void)begin_delay(b, x, now);
    else
        (void)add_path(b, path, now, interval_usec);
    return true;
}
