/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "chains/fair-share.h"

static int compare_sizes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

uint64_t fair_share(uint64_t *sizes, size_t n, uint64_t each, uint64_t all)
{
    if (n > 1)
        qsort(sizes, n, sizeof(*sizes), compare_sizes);
    for (size_t i = 0; i < n; i++) {
        uint64_t share = MIN(all / (n - i), each);

        if (sizes[i] > share)
            return share;
        all -= sizes[i];
    }
    return each;
}
