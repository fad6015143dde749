/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/maps.h"

int maps_clip(const PredictedRange *maps, size_t n, uint64_t size, PredictedRange **ret,
              size_t *ret_n)
{
    PredictedRange *out = NULL;
    uint64_t last = 0;
    size_t k = 0;

    if (n > 0) {
        out = reallocarray(NULL, n, sizeof(*out));
        if (!out)
            return -ENOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t start = MAX(maps[i].offset, last), end;

        if (maps[i].offset >= size)
            continue;
        end = maps[i].offset + MIN(maps[i].length, size - maps[i].offset);
        if (start >= end)
            continue;
        out[k++] = (PredictedRange){start, end - start, maps[i].probability};
        last = end;
    }
    if (k == 0) {
        free(out);
        out = NULL;
    }
    *ret = out;
    *ret_n = k;
    return 0;
}

/* Finds which of the maps from *i on covers `at`, and the next offset after `at` where the answer
 * changes. Advances *i over maps that end at or before `at`. */
static bool probability_at(const PredictedRange *m, size_t n, size_t *i, uint64_t at, double *ret,
                           uint64_t *next)
{
    while (*i < n && m[*i].offset + m[*i].length <= at)
        (*i)++;
    if (*i == n)
        return false;
    if (m[*i].offset > at) {
        *next = MIN(*next, m[*i].offset);
        return false;
    }
    *next = MIN(*next, m[*i].offset + m[*i].length);
    *ret = m[*i].probability;
    return true;
}

int maps_union(const PredictedRange *a, size_t n_a, const PredictedRange *b, size_t n_b,
               PredictedRange **ret, size_t *ret_n)
{
    /* Every border of either set begins at most one range of the result. */
    PredictedRange *out = reallocarray(NULL, 2 * (n_a + n_b) + 1, sizeof(*out));
    size_t i = 0, j = 0, k = 0;

    if (!out)
        return -ENOMEM;
    for (uint64_t at = 0, next; at != UINT64_MAX; at = next) {
        double p = 0, q = 0;
        bool in_a, in_b;

        next = UINT64_MAX;
        in_a = probability_at(a, n_a, &i, at, &p, &next);
        in_b = probability_at(b, n_b, &j, at, &q, &next);
        if (!in_a && !in_b)
            continue;
        p = !in_b || (in_a && p >= q) ? p : q;
        if (k > 0 && out[k - 1].offset + out[k - 1].length == at && out[k - 1].probability == p)
            out[k - 1].length += next - at;
        else
            out[k++] = (PredictedRange){at, next - at, p};
    }
    if (k == 0) {
        free(out);
        out = NULL;
    }
    *ret = out;
    *ret_n = k;
    return 0;
}

int maps_flatten(const PredictedRange *maps, size_t n, PredictedRange **ret, size_t *ret_n)
{
    _cleanup_free_ PredictedRange *low = NULL, *high = NULL;
    size_t n_low, n_high;
    int r;

    if (n <= 1)
        return maps_clip(maps, n, UINT64_MAX, ret, ret_n);
    r = maps_flatten(maps, n / 2, &low, &n_low);
    if (r >= 0)
        r = maps_flatten(maps + n / 2, n - n / 2, &high, &n_high);
    return r < 0 ? r : maps_union(low, n_low, high, n_high, ret, ret_n);
}
