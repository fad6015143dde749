/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The list in which derive-btrfs.c and derive-xfs.c collect blocks. */

#include "volume/metadata-deriver-internal.h"

void derived_done(Derived *d)
{
    free(d->items);
}

int derived_add(Derived *d, const DerivedMetadata *m)
{
    if (grow_array(&d->items, &d->allocated, d->n + 1, sizeof(*m)) < 0)
        return -ENOMEM;
    d->items[d->n++] = *m;
    return 0;
}

static int compare(const void *a, const void *b)
{
    const DerivedMetadata *x = a, *y = b;

    if (x->range.offset != y->range.offset)
        return x->range.offset < y->range.offset ? -1 : 1;
    return x->range.probability > y->range.probability
                   ? -1
                   : x->range.probability < y->range.probability;
}

void derived_finish(Derived *d, DerivedMetadata **ret, size_t *ret_n)
{
    size_t n = 0;

    if (d->n > 1)
        qsort(d->items, d->n, sizeof(*d->items), compare);
    for (size_t i = 0; i < d->n; i++)
        if (n == 0 ||
            d->items[n - 1].range.offset + d->items[n - 1].range.length <= d->items[i].range.offset)
            d->items[n++] = d->items[i];
    *ret = TAKE_PTR(d->items);
    *ret_n = n;
}
