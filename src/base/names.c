/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/names.h"

#include <string.h>

#define HASH_NONFATAL_OOM      1
#define uthash_nonfatal_oom(e) ((e)->lost = true)
#include <uthash.h>

typedef struct NamesEntry {
    UT_hash_handle hh;
    char *name;
    uint32_t number;
    bool lost; /* the index could not get memory for it */
} NamesEntry;

void names_done(Names *n)
{
    NamesEntry *e, *next;

    HASH_ITER (hh, n->index, e, next) {
        HASH_DEL(n->index, e);
        free(e->name);
        free(e);
    }
    free(n->names);
    *n = (Names){0};
}

int names_find(const Names *n, const char *name, uint32_t *ret)
{
    NamesEntry *e;

    HASH_FIND_STR(n->index, name, e);
    if (!e)
        return -ENOENT;
    *ret = e->number;
    return 0;
}

int names_add(Names *n, const char *name, size_t max, uint32_t *ret)
{
    NamesEntry *e;
    int r;

    if (names_find(n, name, ret) >= 0)
        return 0;
    if (n->n >= max)
        return -E2BIG;
    r = grow_array(&n->names, &n->allocated, n->n + 1, sizeof(*n->names));
    if (r < 0)
        return r;
    e = calloc(1, sizeof(*e));
    if (e)
        e->name = strdup(name);
    if (!e || !e->name) {
        free(e);
        return -ENOMEM;
    }
    e->number = (uint32_t)n->n;
    HASH_ADD_KEYPTR(hh, n->index, e->name, strlen(e->name), e);
    if (e->lost) {
        free(e->name);
        free(e);
        return -ENOMEM;
    }
    n->names[n->n++] = e->name;
    *ret = e->number;
    return 0;
}
