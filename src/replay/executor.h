/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Carries operations out, in threads of its own: whoever started it stays free of disk I/O, so that
 * it can answer a signal or meet a deadline while a request hangs. */

#include "base/time-util.h"
#include "replay/mounted.h"
#include "replay/operations.h"

typedef struct ReplayResult {
    uint64_t n_metadata, n_opened, n_data; /* carried out */
    uint64_t metadata_bytes, data_bytes;
    uint64_t
            n_skipped[_REPLAY_SKIP_MAX]; /* files and metadata ranges; not data of a skipped file */
    bool resident;                       /* it was waited for, and everything is there */
} ReplayResult;

typedef enum IoClass {
    IO_CLASS_BEST_EFFORT = 2, /* the numbers of ioprio_set(2) */
    IO_CLASS_IDLE = 3,
} IoClass;

typedef struct ReplayOptions {
    const char *root; /* only filesystems mounted there count */
    Policy policy;
    IoClass io_class;
    bool wait;        /* not done before all is resident */
    const bool *done; /* one a volume: replayed before, left out; or NULL. Outlives the Replay */
    int done_signal;  /* sent to the thread that called replay_start() when all is done */
} ReplayOptions;

typedef struct Replay Replay;

/* Starts it. The pack must outlive it; so must the process the threads: with an operation under way
 * it cannot be freed, only left behind by _exit(2). done_signal must be blocked, and so must be
 * every signal the caller waits for. 0, -ENOMEM, -EAGAIN (no thread). */
int replay_start(const Pack *p, const ReplayOptions *o, Replay **ret);

/* What has been done so far. True if all is done; then *ret_error (may be NULL) is 0 or the
 * negative errno of finding the filesystems or of memory. Operations not begun yet are counted as
 * stopped. */
bool replay_result(Replay *r, ReplayResult *ret, int *ret_error);

/* What is left is done in that order and at that priority from now on: a deadline passed, a login
 * began. Returns at once. */
void replay_hurry(Replay *r, ReplayOrder order, IoClass io_class);

/* Only once all is done: marks the volumes that were mounted. */
void replay_mark_mounted(const Replay *r, bool *done);

/* Only once all is done. */
Replay *replay_free(Replay *r);
