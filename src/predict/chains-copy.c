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

static int copy_history(const UserHistory *h, UserHistory **ret)
{
    UserHistory *x = malloc(sizeof(*x));
    int r;

    if (!x)
        return -ENOMEM;
    *x = *h;
    x->applications = NULL;
    x->index = x->running = NULL;
    x->pairs = NULL;
    x->n_applications = 0;
    r = copy_array(&x->index, h->index, h->allocated_index, sizeof(*h->index));
    if (r >= 0)
        r = copy_array(&x->running, h->running, h->allocated_running, sizeof(*h->running));
    if (r >= 0)
        r = copy_array(&x->pairs, h->pairs, h->allocated_pairs, sizeof(*h->pairs));
    if (r >= 0)
        r = copy_array(&x->applications, h->applications, h->allocated_applications,
                       sizeof(*h->applications));
    for (size_t i = 0; r >= 0 && i < h->n_applications; i++) {
        const ChainsApplication *a = &h->applications[i];

        r = copy_array(&x->applications[i].neighbours, a->neighbours, a->allocated_neighbours,
                       sizeof(*a->neighbours));
        x->n_applications = i + 1; /* those behind still point into the original */
    }
    if (r < 0) {
        user_history_free(x);
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
    x->histories = NULL;
    x->names = NULL;
    x->names_index = NULL;
    x->n_histories = x->allocated_histories = x->n_names = x->allocated_names = 0;
    for (size_t i = 0; r >= 0 && i < c->n_names; i++) {
        uint32_t id;

        r = chains_add_name(x, c->names[i], &id);
    }
    if (r >= 0)
        r = grow_array(&x->histories, &x->allocated_histories, c->n_histories,
                       sizeof(*x->histories));
    for (size_t i = 0; r >= 0 && i < c->n_histories; i++) {
        r = copy_history(c->histories[i], &x->histories[i]);
        if (r >= 0)
            x->n_histories = i + 1;
    }
    if (r < 0)
        return r;
    for (size_t i = 0; i < x->n_histories; i++)
        chains_end(x, x->histories[i]);
    *ret = TAKE_PTR(x);
    return 0;
}
