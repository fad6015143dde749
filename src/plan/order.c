/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/order.h"

#include "base/macros.h"
#include "pack/pack.h"

void piece_list_done(PieceList *l)
{
    free(l->pieces);
    *l = (PieceList){0};
}

static int add(PieceList *l, Piece p)
{
    int r = grow_array(&l->pieces, &l->allocated, l->n + 1, sizeof(Piece));

    if (r < 0)
        return r;
    l->pieces[l->n++] = p;
    return 0;
}

int pieces_add_map(PieceList *l, uint32_t file, const PredictedMap *map, usec_t need,
                   const Extent *extents, size_t n_extents)
{
    uint64_t start = ALIGN_DOWN(map->offset, (uint64_t)PACK_PAGE_SIZE);
    uint64_t end = ALIGN_UP(map->offset + map->length, (uint64_t)PACK_PAGE_SIZE);
    size_t lo = 0, hi = n_extents;

    if (n_extents == 0)
        return add(l, (Piece){file, start, end - start, PACK_PHYSICAL_UNKNOWN, map->probability,
                              need});
    /* The first extent that ends after the start. */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (extents[mid].logical + extents[mid].length <= start)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < n_extents && extents[lo].logical < end; lo++) {
        const Extent *e = &extents[lo];
        uint64_t from = MAX(start, ALIGN_DOWN(e->logical, (uint64_t)PACK_PAGE_SIZE));
        uint64_t to = MIN(end, ALIGN_UP(e->logical + e->length, (uint64_t)PACK_PAGE_SIZE));
        int r;

        if (from >= to)
            continue;
        r = add(l, (Piece){file, from, to - from,
                           e->physical + (from > e->logical ? from - e->logical : 0),
                           map->probability, need});
        if (r < 0)
            return r;
        start = to; /* blocks smaller than pages: no page twice */
    }
    return 0;
}

static int compare_pieces(const void *a, const void *b)
{
    const Piece *x = a, *y = b;

    if (x->physical != y->physical)
        return x->physical < y->physical ? -1 : 1;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

void pieces_sort(PieceList *l)
{
    if (l->n > 1)
        qsort(l->pieces, l->n, sizeof(Piece), compare_pieces);
}

static bool can_join(const Piece *a, const Piece *b, uint64_t max_gap)
{
    uint64_t gap;

    if (a->file != b->file || b->offset < a->offset + a->length)
        return false;
    gap = b->offset - (a->offset + a->length);
    if (a->physical == PACK_PHYSICAL_UNKNOWN || b->physical == PACK_PHYSICAL_UNKNOWN)
        return a->physical == b->physical && gap == 0;
    return b->physical - a->physical == b->offset - a->offset && gap <= max_gap;
}

uint64_t pieces_merge(PieceList *l, uint64_t max_gap)
{
    uint64_t gaps = 0;
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++) {
        Piece *last = n > 0 ? &l->pieces[n - 1] : NULL, *p = &l->pieces[i];

        if (last && can_join(last, p, max_gap)) {
            gaps += p->offset - (last->offset + last->length);
            last->length = p->offset + p->length - last->offset;
            last->probability = MAX(last->probability, p->probability);
            last->need = MIN(last->need, p->need);
        } else
            l->pieces[n++] = *p;
    }
    l->n = n;
    return gaps;
}
