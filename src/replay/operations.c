/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "replay/operations.h"

void operation_list_done(OperationList *l)
{
    free(l->operations);
    *l = (OperationList){0};
}

const char *operation_kind_to_string(OperationKind k)
{
    static const char *const names[_OPERATION_KIND_MAX] = {
            [OPERATION_METADATA] = "metadata",
            [OPERATION_OPEN] = "open",
            [OPERATION_DATA] = "data",
    };

    return (int)k >= 0 && k < _OPERATION_KIND_MAX ? names[k] : NULL;
}

ReplayOrder replay_order_of(Policy p)
{
    return p == POLICY_BESIDE ? REPLAY_ORDER_NEED : REPLAY_ORDER_PHYSICAL;
}

bool segment_is_ordered(const PackSegment *s)
{
    return s->device_class == DEVICE_CLASS_HDD ||
           (s->device_class == DEVICE_CLASS_UNKNOWN &&
            (le32toh(s->flags) & PACK_SEGMENT_ROTATIONAL));
}

unsigned segment_parallelism(const PackSegment *s)
{
    switch ((DeviceClass)s->device_class) {
    case DEVICE_CLASS_NETDISK:
        return 32; /* the round trip dominates: keep many under way */
    case DEVICE_CLASS_SSD:
        return 16;
    case DEVICE_CLASS_SD:
    case DEVICE_CLASS_EMMC:
        return 2; /* one request at a time in the card; a second hides our own pauses */
    default:
        return segment_is_ordered(s) ? 1 : 8;
    }
}

/* The pack whose data is being sorted: qsort_r's argument. */
typedef struct Sorting {
    const Pack *pack;
    ReplayOrder order;
} Sorting;

static int compare_data(const void *a, const void *b, void *arg)
{
    const Sorting *s = arg;
    uint32_t i = ((const Operation *)a)->index, k = ((const Operation *)b)->index;
    const PackData *x = &s->pack->data[i], *y = &s->pack->data[k];

    if (s->order == REPLAY_ORDER_NEED && x->need_msec != y->need_msec)
        return le32toh(x->need_msec) < le32toh(y->need_msec) ? -1 : 1;
    if (s->order == REPLAY_ORDER_LIKELY && x->probability != y->probability)
        return le16toh(x->probability) > le16toh(y->probability) ? -1 : 1;
    return i < k ? -1 : i > k; /* the pack's own order: physical */
}

int operations_from_pack(const Pack *p, Policy policy, OperationList *ret)
{
    const PackHeader *h = p->header;
    Sorting sorting = {p, replay_order_of(policy)};
    OperationList l = {0};

    if (policy == POLICY_OFF) {
        *ret = l;
        return 0;
    }
    /* Counts were checked against the file's size: this cannot be absurd. */
    l.operations = calloc((size_t)le32toh(h->n_metadata) + le32toh(h->n_files) +
                                  le32toh(h->n_data) + 1,
                          sizeof(Operation));
    if (!l.operations)
        return -ENOMEM;
    for (uint32_t s = 0; s < le32toh(h->n_segments); s++) {
        const PackSegment *g = &p->segments[s];
        bool touch = le32toh(g->flags) & PACK_SEGMENT_TOUCH_ENTRIES;
        size_t first_data;

        for (uint32_t i = 0; i < le32toh(g->n_metadata); i++)
            l.operations[l.n++] =
                    (Operation){OPERATION_METADATA, s, le32toh(g->first_metadata) + i};
        if (policy == POLICY_METADATA && !touch)
            continue;
        for (uint32_t i = 0; i < le32toh(g->n_files); i++)
            l.operations[l.n++] = (Operation){OPERATION_OPEN, s, le32toh(g->first_file) + i};
        if (policy == POLICY_METADATA)
            continue;
        first_data = l.n;
        for (uint32_t i = 0; i < le32toh(g->n_data); i++)
            l.operations[l.n++] = (Operation){OPERATION_DATA, s, le32toh(g->first_data) + i};
        if (sorting.order != REPLAY_ORDER_PHYSICAL && l.n - first_data > 1)
            qsort_r(l.operations + first_data, l.n - first_data, sizeof(Operation), compare_data,
                    &sorting);
    }
    *ret = l;
    return 0;
}
