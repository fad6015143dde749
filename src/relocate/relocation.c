/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "relocate/relocation.h"

#include "plan/cost-model.h"

#include <endian.h>
#include <string.h>

typedef struct Ordered {
    RelocationPart part;
    size_t first; /* index of the first part of its file in `needed` */
} Ordered;

static int compare_ordered(const void *a, const void *b)
{
    const Ordered *x = a, *y = b;

    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    if (x->part.offset != y->part.offset)
        return x->part.offset < y->part.offset ? -1 : 1;
    return 0;
}

/* Sorts the parts by the file's first part, and by offset. The caller frees *ret. */
static int order(const RelocationPart *needed, size_t n, size_t n_files, Ordered **ret)
{
    _cleanup_free_ Ordered *o = calloc(n + 1, sizeof(*o));
    _cleanup_free_ size_t *first = calloc(n_files + 1, sizeof(*first));

    if (!o || !first)
        return -ENOMEM;
    for (size_t i = n; i-- > 0;)
        first[needed[i].file] = i;
    for (size_t i = 0; i < n; i++)
        o[i] = (Ordered){needed[i], first[needed[i].file]};
    if (n > 0)
        qsort(o, n, sizeof(*o), compare_ordered);
    *ret = TAKE_PTR(o);
    return 0;
}

/* Replaces the file's parts, the last ones of the list, by the whole file if half of its `end`
 * bytes are needed. The gaps within the parts are not needed. Returns the new number of parts. */
static size_t close_file(RelocationPart *parts, size_t first, size_t n, uint64_t needed,
                         uint64_t end)
{
    if (n == first || needed < end / 2)
        return n;
    parts[first].offset = 0;
    parts[first].length = end;
    return first + 1;
}

int relocation_join(const RelocationPart *needed, size_t n, const uint64_t *sizes, size_t n_files,
                    uint64_t align, RelocationPart **ret, size_t *ret_n)
{
    _cleanup_free_ Ordered *o = NULL;
    _cleanup_free_ RelocationPart *parts = calloc(n + 1, sizeof(*parts));
    size_t n_parts = 0, first = 0;
    uint64_t sum = 0,
             known = 0; /* needed bytes of the file, and up to which offset they are counted */
    int r = parts ? order(needed, n, n_files, &o) : -ENOMEM;

    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++) {
        uint32_t file = o[i].part.file;
        uint64_t limit = ALIGN_UP(sizes[file], align);
        uint64_t begin = ALIGN_DOWN(o[i].part.offset, align);
        uint64_t end = MIN(ALIGN_UP(o[i].part.offset + o[i].part.length, align), limit);
        RelocationPart *last = n_parts > first ? &parts[n_parts - 1] : NULL;

        if (i > 0 && o[i - 1].part.file != file) {
            n_parts = close_file(parts, first, n_parts, sum,
                                 ALIGN_UP(sizes[o[i - 1].part.file], align));
            first = n_parts;
            sum = known = 0;
            last = NULL;
        }
        if (begin >= end)
            continue;
        sum += end - MIN(MAX(begin, known), end);
        known = MAX(known, end);
        if (last && begin <= last->offset + last->length + RELOCATION_GAP)
            last->length = MAX(last->offset + last->length, end) - last->offset;
        else
            parts[n_parts++] = (RelocationPart){file, begin, end - begin};
    }
    if (n > 0)
        n_parts =
                close_file(parts, first, n_parts, sum, ALIGN_UP(sizes[o[n - 1].part.file], align));
    *ret = TAKE_PTR(parts);
    *ret_n = n_parts;
    return 0;
}

int relocation_cost(const DeviceProfile *d, uint64_t size, PlacedRangeList *l, RelocationCost *ret)
{
    _cleanup_free_ Range *requests = calloc(l->n + 1, sizeof(*requests));
    size_t n = 0;

    if (!requests)
        return -ENOMEM;
    placed_ranges_sort(l);
    for (size_t i = 0; i < l->n; i++) {
        const PlacedRange *p = &l->ranges[i];

        if (p->physical == PHYSICAL_UNKNOWN)
            continue;
        if (n > 0 && p->physical <= range_end(&requests[n - 1]))
            requests[n - 1].length = MAX(range_end(&requests[n - 1]), p->physical + p->length) -
                                     requests[n - 1].offset;
        else
            requests[n++] = (Range){p->physical, p->length};
    }
    *ret = (RelocationCost){n, cost_sequence_usec(d, requests, n, size)};
    return 0;
}

/* Returns what is gained if the ranges lie next to each other. Sorts the list. */
static double gain_of_ranges(const DeviceProfile *d, uint64_t size, PlacedRangeList *l)
{
    RelocationCost before, after;
    PlacedRange all = {0};

    if (l->n == 0 || relocation_cost(d, size, l, &before) < 0)
        return 0;
    all.physical = l->ranges[0].physical;
    for (size_t i = 0; i < l->n; i++)
        all.length += l->ranges[i].length;
    if (relocation_cost(d, size, &(PlacedRangeList){&all, 1, 1}, &after) < 0)
        return 0;
    return MAX(before.usec - after.usec, 0.0);
}

static double gain_of_volume(const Pack *p, const PackVolume *v)
{
    uint32_t first = le32toh(v->first_data), n = le32toh(v->n_data);
    _cleanup_free_ PlacedRange *ranges = calloc((size_t)n + 1, sizeof(*ranges));
    PlacedRangeList l = {ranges, 0, n};

    if (!ranges)
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        const PackData *d = &p->data[first + i];

        if (le64toh(d->physical) != PACK_PHYSICAL_UNKNOWN)
            ranges[l.n++] =
                    (PlacedRange){.physical = le64toh(d->physical), .length = le64toh(d->length)};
    }
    return gain_of_ranges(device_profile_of_class((DeviceClass)v->device_class),
                          le64toh(v->device_size), &l);
}

double relocation_gain_usec(const Pack *p)
{
    const uint32_t needed = PACK_VOLUME_SEEKS_SLOWLY | PACK_VOLUME_PHYSICAL;
    double sum = 0;

    for (uint32_t i = 0; i < le32toh(p->header->n_volumes); i++) {
        const PackVolume *v = &p->volumes[i];

        if ((le32toh(v->flags) & needed) == needed &&
            strcmp(pack_string(p, v->fstype), "ext4") == 0)
            sum += gain_of_volume(p, v);
    }
    return sum;
}
