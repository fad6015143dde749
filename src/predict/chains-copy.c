/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A copy of what is being learned, to save it while it goes on. */

#include "predict/chains-internal.h"

#include <string.h>

/* n elements of an array, as long as allocated. 0 or -ENOMEM. */
static int copy_array(void *ret, const void *from, size_t allocated, size_t size)
{
    void **to = ret;

    *to = NULL;
    if (allocated == 0)
        return 0;
    *to = reallocarray(NULL, allocated, size);
    if (!*to)
        return -ENOMEM;
    memcpy(*to, from, allocated * size);
    return 0;
}

static int copy_world(const ChainsWorld *w, ChainsWorld **ret)
{
    ChainsWorld *x = malloc(sizeof(*x));
    int r;

    if (!x)
        return -ENOMEM;
    *x = *w;
    x->applications = NULL;
    x->index = x->running = NULL;
    x->pairs = NULL;
    x->n_applications = 0;
    r = copy_array(&x->index, w->index, w->allocated_index, sizeof(*w->index));
    if (r >= 0)
        r = copy_array(&x->running, w->running, w->allocated_running, sizeof(*w->running));
    if (r >= 0)
        r = copy_array(&x->pairs, w->pairs, w->allocated_pairs, sizeof(*w->pairs));
    if (r >= 0)
        r = copy_array(&x->applications, w->applications, w->allocated_applications,
                       sizeof(*w->applications));
    for (size_t i = 0; r >= 0 && i < w->n_applications; i++) {
        const ChainsApplication *a = &w->applications[i];

        r = copy_array(&x->applications[i].partners, a->partners, a->allocated_partners,
                       sizeof(*a->partners));
        x->n_applications = i + 1; /* those behind still point into the original */
    }
    if (r < 0) {
        chains_world_free(x);
        return r;
    }
    *ret = x;
    return 0;
}

int chains_copy_ended(const Chains *c, Chains **ret)
{
    _cleanup_chains_ Chains *x = calloc(1, sizeof(*x));
    int r = 0;

    if (!x)
        return -ENOMEM;
    *x = *c;
    x->worlds = NULL;
    x->names = NULL;
    x->names_index = NULL;
    x->n_worlds = x->allocated_worlds = x->n_names = x->allocated_names = 0;
    for (size_t i = 0; r >= 0 && i < c->n_names; i++) {
        uint32_t id;

        r = chains_add_name(x, c->names[i], &id);
    }
    if (r >= 0)
        r = grow_array(&x->worlds, &x->allocated_worlds, c->n_worlds, sizeof(*x->worlds));
    for (size_t i = 0; r >= 0 && i < c->n_worlds; i++) {
        r = copy_world(c->worlds[i], &x->worlds[i]);
        if (r >= 0)
            x->n_worlds = i + 1;
    }
    if (r < 0)
        return r;
    for (size_t i = 0; i < x->n_worlds; i++)
        chains_end(x, x->worlds[i]);
    *ret = TAKE_PTR(x);
    return 0;
}
