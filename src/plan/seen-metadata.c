/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/seen-metadata.h"

#include <string.h>

static int compare_offsets(const void *a, const void *b)
{
    const Range *x = a, *y = b;

    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Collects what was seen of the filesystem with that UUID. */
static int collect_seen(const Prediction *p, const char *uuid, RangeSet *ret)
{
    _cleanup_free_ Range *ranges = calloc(p->n_seen + 1, sizeof(*ranges));
    size_t n = 0;

    if (!ranges)
        return -ENOMEM;
    for (size_t i = 0; i < p->n_seen; i++)
        if (strcmp(p->seen[i].uuid, uuid) == 0)
            ranges[n++] = (Range){p->seen[i].range.offset, p->seen[i].range.length};
    /* The ranges come in several sorted rows. A range that is inserted before others moves them. */
    qsort(ranges, n, sizeof(*ranges), compare_offsets);
    for (size_t i = 0; i < n; i++)
        if (range_set_insert(ret, ranges[i].offset, ranges[i].length) == -ENOMEM)
            return -ENOMEM;
    return 0;
}

/* The located metadata that is kept so far. */
typedef struct Kept {
    LocatedMetadata *metadata;
    size_t n, allocated;
} Kept;

static void kept_done(Kept *k)
{
    free(k->metadata);
}

static int keep(Kept *k, const LocatedMetadata *m, uint64_t offset, uint64_t end)
{
    if (grow_array(&k->metadata, &k->allocated, k->n + 1, sizeof(LocatedMetadata)) < 0)
        return -ENOMEM;
    k->metadata[k->n] = *m;
    k->metadata[k->n].range.offset = offset;
    k->metadata[k->n++].range.length = end - offset;
    return 0;
}

/* Keeps the parts of one range that were seen. Returns 0 or -ENOMEM. */
static int keep_parts(Kept *k, const LocatedMetadata *m, const RangeSet *seen)
{
    uint64_t begin = m->range.offset, end = begin + m->range.length;
    size_t lo = 0, hi = seen->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (range_end(&seen->ranges[mid]) <= begin)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < seen->n && seen->ranges[lo].offset < end; lo++) {
        const Range *r = &seen->ranges[lo];
        int error = keep(k, m, MAX(begin, r->offset), MIN(end, range_end(r)));

        if (error < 0)
            return error;
    }
    return 0;
}

int seen_metadata_keep(LocatedPlan *l, const Prediction *p)
{
    _cleanup_(kept_done) Kept kept = {0};
    size_t i = 0;

    if (p->n_seen == 0)
        return 0;
    for (uint32_t v = 0; v < l->volumes->n; v++) {
        _cleanup_range_set_ RangeSet seen = {0};
        int r = collect_seen(p, l->volumes->volumes[v].uuid, &seen);

        for (; r >= 0 && i < l->n_metadata && l->metadata[i].volume == v; i++) {
            const LocatedMetadata *m = &l->metadata[i];

            r = seen.n > 0 ? keep_parts(&kept, m, &seen)
                           : keep(&kept, m, m->range.offset, m->range.offset + m->range.length);
        }
        if (r < 0)
            return r;
    }
    free(l->metadata);
    l->metadata = TAKE_PTR(kept.metadata);
    l->n_metadata = kept.n;
    l->allocated_metadata = kept.allocated;
    return 0;
}
