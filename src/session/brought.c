/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/brought.h"

#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct Brought {
    UT_hash_handle hh;
    usec_t at, wait;
    RangeSet ranges; /* of a file */
    bool oom;
    char path[];
};

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(elt) ((elt)->oom = true)

static void free_one(Brought *x)
{
    range_set_done(&x->ranges);
    free(x);
}

Brought *brought_free(Brought *b)
{
    Brought *x, *tmp;

    HASH_ITER (hh, b, x, tmp) {
        HASH_DEL(b, x);
        free_one(x);
    }
    return NULL;
}

/* Takes `ranges` over, or leaves them if memory runs out. */
static int remember(Brought **b, const char *path, usec_t now, RangeSet *ranges)
{
    Brought *x;

    if (HASH_COUNT(*b) >= BROUGHT_MAX)
        *b = brought_free(*b);
    x = calloc(1, sizeof(*x) + strlen(path) + 1);
    if (!x)
        return -ENOMEM;
    strcpy(x->path, path);
    HASH_ADD_STR(*b, path, x);
    if (x->oom) {
        free(x);
        return -ENOMEM;
    }
    x->at = now;
    x->wait = BROUGHT_WAIT_MIN;
    if (ranges) {
        x->ranges = *ranges;
        *ranges = (RangeSet){0};
    }
    return 0;
}

int brought_decide(Brought **b, const char *path, usec_t now, RangeSet *missing)
{
    _cleanup_range_set_ RangeSet lost = {0}, fresh = {0};
    Brought *x;
    int r;

    if (missing->n == 0)
        return 0;
    HASH_FIND_STR(*b, path, x);
    if (!x) {
        r = range_set_copy(missing, &fresh);
        return r < 0 ? r : remember(b, path, now, &fresh);
    }
    r = range_set_intersect(missing, &x->ranges, &lost);
    if (r < 0)
        return r;
    if (lost.n > 0 && now < x->at + x->wait) {
        r = range_set_subtract(missing, &lost, &fresh);
        if (r < 0)
            return r;
        range_set_done(missing);
        *missing = fresh;
        fresh = (RangeSet){0};
        /* What is new of a file does not make what was lost wait any longer. */
        return range_set_unite(&x->ranges, missing);
    }
    if (lost.n > 0) {
        /* What stayed for long is no loss that repeats. */
        bool soon = now < x->at + 4 * x->wait;

        x->wait = soon ? MIN(2 * x->wait, BROUGHT_WAIT_MAX) : BROUGHT_WAIT_MIN;
        x->at = now;
    }
    return range_set_unite(&x->ranges, missing);
}

bool brought_list_due(Brought **b, const char *path, usec_t now, usec_t every)
{
    Brought *x;

    HASH_FIND_STR(*b, path, x);
    if (x && now < x->at + every)
        return false;
    if (x)
        x->at = now;
    else
        (void)remember(b, path, now, NULL);
    return true;
}
