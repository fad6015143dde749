/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/refetch-backoff.h"

#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct RefetchBackoff {
    UT_hash_handle hh;
    usec_t at, wait;
    RangeSet ranges; /* of a file */
    bool oom;
    char path[];
};

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(elt) ((elt)->oom = true)

static void free_one(RefetchBackoff *x)
{
    range_set_done(&x->ranges);
    free(x);
}

RefetchBackoff *refetch_backoff_free(RefetchBackoff *b)
{
    RefetchBackoff *x, *tmp;

    HASH_ITER (hh, b, x, tmp) {
        HASH_DEL(b, x);
        free_one(x);
    }
    return NULL;
}

/* NULL if memory runs out. */
static RefetchBackoff *remember(RefetchBackoff **b, const char *path, usec_t now)
{
    RefetchBackoff *x;

    if (HASH_COUNT(*b) >= REFETCH_PATHS_MAX)
        *b = refetch_backoff_free(*b);
    x = calloc(1, sizeof(*x) + strlen(path) + 1);
    if (!x)
        return NULL;
    strcpy(x->path, path);
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
    _cleanup_range_set_ RangeSet fresh = {0};
    const RefetchBackoff *x;
    int r;

    HASH_FIND_STR(b, path, x);
    if (!x || now >= x->at + x->wait)
        return 0;
    r = range_set_subtract(missing, &x->ranges, &fresh);
    if (r < 0)
        return r;
    range_set_done(missing);
    *missing = fresh;
    fresh = (RangeSet){0};
    return 0;
}

int refetch_backoff_note_read(RefetchBackoff **b, const char *path, usec_t now, Range part)
{
    _cleanup_range_set_ RangeSet lost = {0};
    RefetchBackoff *x;
    int r;

    HASH_FIND_STR(*b, path, x);
    if (!x)
        x = remember(b, path, now);
    if (!x)
        return -ENOMEM;
    r = range_set_intersect(&(RangeSet){&part, 1, 1}, &x->ranges, &lost);
    if (r < 0)
        return r;
    /* What is new of a file does not make what was lost wait any longer; nor do its other parts,
     * when the first has been fetched. */
    if (lost.n > 0 && now >= x->at + x->wait) {
        /* What stayed for long is no loss that repeats. */
        bool soon = now < x->at + 4 * x->wait;

        x->wait = soon ? MIN(2 * x->wait, REFETCH_WAIT_MAX_USEC) : REFETCH_WAIT_MIN_USEC;
        x->at = now;
        range_set_done(&x->ranges); /* the others are due until they are read, too */
    }
    return range_set_add(&x->ranges, part.start, part.end);
}

bool refetch_backoff_list_due(RefetchBackoff **b, const char *path, usec_t now, usec_t every)
{
    RefetchBackoff *x;

    HASH_FIND_STR(*b, path, x);
    if (x && now < x->at + every)
        return false;
    if (x)
        x->at = now;
    else
        (void)remember(b, path, now);
    return true;
}
