/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What was backoff in, and when: so that what the kernel takes back is not fetched again and again.
 * Memory that it took it had another use for, and a disk that is read every cycle is never idle.
 * What is missing again was lost, and is left alone for a time that doubles with each loss. Nothing
 * tells whether a directory's entries are still there: each is due again after PREFETCH_LIST_USEC.
 * Pure. */

#include "base/ranges.h"
#include "base/time-util.h"

#define REFETCH_WAIT_MIN_USEC (120 * USEC_PER_SEC)
#define REFETCH_WAIT_MAX_USEC (3600 * USEC_PER_SEC)
#define REFETCH_PATHS_MAX     8192U /* paths remembered; then all are forgotten */

typedef struct RefetchBackoff RefetchBackoff; /* NULL is valid and empty */

RefetchBackoff *refetch_backoff_free(RefetchBackoff *b);

/* Takes off `missing` what is to be left alone at `now` (of a clock that never runs back). 0 or
 * -ENOMEM. */
int refetch_backoff_filter(const RefetchBackoff *b, const char *path, usec_t now,
                           RangeSet *missing);

/* That part was backoff in at `now`: to be said of what was read, not of what was meant to be,
 * since whatever starts meanwhile comes between. 0 or -ENOMEM. */
int refetch_backoff_note_read(RefetchBackoff **b, const char *path, usec_t now, Range part);

/* True if the directory is to be listed at `now`, which is remembered; `every`: usec. If memory
 * runs out it is true. */
bool refetch_backoff_list_due(RefetchBackoff **b, const char *path, usec_t now, usec_t every);
