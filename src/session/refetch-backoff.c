/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/refetch-backoff.h"

#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct RefetchBackoff {
    UT_hash_handle hh; /* hashed by path */
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

/* Adds a path. If REFETCH_PATHS_MAX paths are known, all of them are forgotten first. Returns NULL
 * if memory runs out. */
static RefetchBackoff *add_path(RefetchBackoff **b, const char *path, usec_t now)
{
    size_t size = strlen(path) + 1;
    RefetchBackoff *x;

    if (HASH_COUNT(*b) >= REFETCH_PATHS_MAX)
        *b = refetch_backoff_free(*b);
    x = calloc(1, sizeof(*x) + size);
    if (!x)
        return NULL;
    memcpy(x->path, path, size);
    HASH_ADD_STR(*b, path, x);
    if (x->oom) {
        free(x);
        return NULL;
    }
    x->at = now;
    x->wait = REFETCH_WAIT_MIN_USEC;
    return x;
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
        x = add_path(b, path, now);
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
        x->at = now;
        range_set_done(&x->ranges); /* the other ranges stay due until they are read, too */
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
        x->at = now;
    else
        (void)add_path(b, path, now);
    return true;
}
