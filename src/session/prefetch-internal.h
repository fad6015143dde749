/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by the prefetch thread (prefetch-thread.c) and its passes (prefetch-pass.c). */

#include "base/ranges.h"
#include "session/prefetch-pace.h"
#include "session/prefetch-thread.h"
#include "session/refetch-backoff.h"
#include "volume/volume.h"

/* The requests for one file, directory or block device. */
typedef struct PrefetchFile {
    char *path; /* as this process sees it; for metadata the filesystem's UUID */
    PrefetchKind kind;
    RangeSet ranges;
} PrefetchFile;

/* State that is kept from one pass to the next. Valid if the members up to `arg` are set and the
 * others are zeroed. */
typedef struct PrefetchState {
    const char *root;                 /* borrowed */
    uint32_t uid;                     /* of the session: see model/ownership.h */
    uint64_t hung[PREFETCH_HUNG_MAX]; /* filesystems that did not answer, and are left out */
    size_t n_hung;
    bool cachestat; /* the kernel has cachestat(2) */
    /* All callbacks get `arg`. */
    bool (*is_cancelled)(void *arg);                       /* the pass must end */
    void (*add_report)(void *arg, const PrefetchReport *); /* counts to be added to the sums */
    void (*refuse)(void *arg, const PrefetchFile *f);      /* f must not be requested again */
    /* The thread is about to access the filesystem, or the block device, with that number; 0: it
     * accesses none. */
    void (*touch)(void *arg, uint64_t dev);
    void *arg;

    RefetchBackoff *backoff;
    PrefetchPace pace;
    VolumeTable volumes; /* read at the first request for metadata */
    bool volumes_read;
} PrefetchState;

/* Runs one pass over the files from index *at on, and advances *at past the last file that it
 * looked up. Returns true if another pass should follow, because the pass has reached
 * PREFETCH_PASS_BYTES or PREFETCH_PASS_FILES and files are left. Returns false if it was cancelled,
 * or ended by heat or short memory. */
bool prefetch_pass_run(PrefetchState *s, const PrefetchFile *files, size_t n, size_t *at);

void prefetch_state_done(PrefetchState *s);
