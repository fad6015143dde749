/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Compares a pack with what a session read. Pure. */

#include "measure/session-record.h"
#include "pack/pack.h"
#include "trace/trace.h"

/* How a session used a file of the pack. */
typedef enum FileUse {
    FILE_USE_HIT,   /* in the pack and used */
    FILE_USE_WASTE, /* in the pack and not used */
    FILE_USE_MISS,  /* used, and not in the pack or not as a whole */
    _FILE_USE_MAX,
} FileUse;

typedef struct FileUsage {
    const char *path; /* valid during the call */
    FileUse use;
    uint64_t bytes;
} FileUsage;

/* Receives the result for each file of a comparison. A file is reported once for each FileUse that
 * some of its bytes have. */
typedef void (*file_usage_t)(void *arg, const FileUsage *f);

/* Sums up which data of the pack the traced session used. If a pack was replayed in the session
 * (TRACE_REPLAYED), the residency of the trace shows what replay read. Then a file of the pack
 * counts as used, with all its bytes, if the session opened the file. If no pack was replayed, each
 * page counts by itself. Resident ranges outside the pack are misses in both cases. `report` may be
 * NULL. Returns 0 or -ENOMEM. */
int pack_usage_compare(const Pack *p, const Trace *t, file_usage_t report, void *arg,
                       PackUsage *ret);

/* Sums up which data of an application's launch set the start of the application used: from `start`
 * for `took`, in microseconds since the stage of the trace began. Each file counts as a whole. A
 * file of the set that any program opened in that time is a hit, because the helpers of the
 * application read files, too. A file outside the set is a miss if the application itself opened
 * it. `report` may be NULL. Returns 0 or -ENOMEM. */
int pack_usage_compare_start(const Pack *p, const Trace *t, uint32_t application, usec_t start,
                             usec_t took, file_usage_t report, void *arg, PackUsage *ret);
