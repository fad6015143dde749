/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What replaying a pack means, as a list: one executor runs it, a dry run prints it. Pure. */

#include "pack/pack.h"

typedef enum OperationKind {
    OPERATION_METADATA, /* read a range of the block device */
    OPERATION_OPEN,     /* open a file or directory, and see that it is the one that was planned */
    OPERATION_DATA,     /* read a range of a file that was opened */
    _OPERATION_KIND_MAX,
    _OPERATION_KIND_INVALID = -EINVAL,
} OperationKind;

typedef struct Operation {
    OperationKind kind;
    uint32_t segment;
    uint32_t index; /* into the pack's metadata, files or data */
} Operation;

typedef struct OperationList {
    Operation *operations;
    size_t n;
} OperationList;

void operation_list_done(OperationList *l);
#define _cleanup_operation_list_ _cleanup_(operation_list_done)

/* The order in which ranges are wanted. */
typedef enum ReplayOrder {
    REPLAY_ORDER_PHYSICAL, /* metadata by block, opens by inode, data by block */
    REPLAY_ORDER_NEED,     /* the same, data by the instant it is needed */
    REPLAY_ORDER_LIKELY,   /* the same, data by falling probability */
} ReplayOrder;

ReplayOrder replay_order_of(Policy p);

/* The operations of the whole pack, segment after segment. POLICY_OFF gives none, POLICY_METADATA
 * metadata ranges, and opens on filesystems whose metadata has its own cache. Opens always precede
 * the data of their file. 0 or -ENOMEM. */
int operations_from_pack(const Pack *p, Policy policy, OperationList *ret);

/* True if the segment is best served by one ordered stream (hard disk, or unknown). */
bool segment_is_ordered(const PackSegment *s);

/* How many requests at once serve a segment that is not. */
unsigned segment_parallelism(const PackSegment *s);

const char *operation_kind_to_string(OperationKind k);
