/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/located-metadata.h"

#include "plan/maps.h"

int located_metadata_add(LocatedPlan *l, uint32_t volume, PredictedRange range, MetadataItem item)
{
    int r = grow_array(&l->metadata, &l->allocated_metadata, l->n_metadata + 1,
                       sizeof(LocatedMetadata));

    if (r >= 0)
        l->metadata[l->n_metadata++] = (LocatedMetadata){volume, range, item};
    return r;
}

/* Returns true if another subvolume of the filesystem has the block already: checksums belong to
 * all of them. The higher probability counts. */
static bool is_shared(LocatedPlan *l, uint32_t volume, const DerivedMetadata *d)
{
    const Volume *all = l->volumes->volumes;

    for (size_t i = 0; d->shared && i < l->n_metadata; i++) {
        LocatedMetadata *m = &l->metadata[i];

        if (m->volume == volume || all[m->volume].block_dev != all[volume].block_dev ||
            m->range.offset != d->range.offset)
            continue;
        m->range.probability = MAX(m->range.probability, d->range.probability);
        return true;
    }
    return false;
}

int located_metadata_add_derived(LocatedPlan *l, uint32_t volume, const DerivedMetadata *d)
{
    if (d->passing)
        return d->range.offset + d->range.length > l->volumes->volumes[volume].size_bytes
                       ? 0
                       : range_set_insert(&l->passing[volume], d->range.offset, d->range.length);
    l->metadata_derived = true;
    return is_shared(l, volume, d) ? 0 : located_metadata_add(l, volume, d->range, d->item);
}

static int compare_places(const void *a, const void *b)
{
    const LocatedMetadata *x = a, *y = b;

    if (x->volume != y->volume)
        return x->volume < y->volume ? -1 : 1;
    return (x->range.offset > y->range.offset) - (x->range.offset < y->range.offset);
}

int located_metadata_make_disjoint(LocatedPlan *l)
{
    _cleanup_free_ LocatedMetadata *all = TAKE_PTR(l->metadata);
    _cleanup_free_ PredictedRange *ranges = calloc(l->n_metadata + 1, sizeof(PredictedRange));
    size_t n_all = l->n_metadata, i = 0;

    l->n_metadata = l->allocated_metadata = 0;
    if (!ranges)
        return -ENOMEM;
    if (n_all > 1)
        qsort(all, n_all, sizeof(LocatedMetadata), compare_places);
    while (i < n_all) {
        _cleanup_free_ PredictedRange *disjoint = NULL;
        uint32_t volume = all[i].volume;
        size_t n = 0, n_disjoint;

        for (; i < n_all && all[i].volume == volume; i++)
            if (all[i].item.reader == METADATA_OF_DEVICE)
                ranges[n++] = all[i].range;
            else if (located_metadata_add(l, volume, all[i].range, all[i].item) < 0)
                return -ENOMEM; /* a volume with items has only them, which are disjoint */
        if (maps_flatten(ranges, n, &disjoint, &n_disjoint) < 0)
            return -ENOMEM;
        for (size_t k = 0; k < n_disjoint; k++)
            if (located_metadata_add(l, volume, disjoint[k], (MetadataItem){0}) < 0)
                return -ENOMEM;
    }
    return 0;
}
