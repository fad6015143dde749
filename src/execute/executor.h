/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Executes operations in separate threads. The thread that starts the replay never waits for the
 * disk, so that it can answer a signal or meet a deadline while a request hangs. */

#include "base/time-util.h"
#include "execute/mounted.h"
#include "execute/operations.h"
#include "system/thread.h"

typedef struct ReplayResult {
    uint64_t n_metadata, n_opened, n_data; /* executed */
    uint64_t metadata_bytes, data_bytes;
    uint64_t item_bytes;     /* a part of metadata_bytes: blocks of items, which may have
                                been in memory */
    uint64_t resident_bytes; /* not requested because of `skip_resident` */
    uint64_t n_skipped[_REPLAY_SKIP_MAX]; /* operations that were not executed, but not the data of
                                             a skipped file */
    bool resident;                        /* with `wait`: everything is in memory */
} ReplayResult;

/* The pack of another replay of this boot. */
typedef struct EarlierPack {
    const Pack *pack; /* outlives the Replay; NULL: none */
    bool running;     /* that replay is not over yet */
} EarlierPack;

#define REPLAY_EARLIER_MAX 2U

typedef struct ReplayOptions {
    const char *root; /* only filesystems mounted at or below it count */
    Policy policy;
    IoClass io_class;
    bool wait;              /* the replay is done only when everything is resident */
    bool skip_resident;     /* request only what is not resident, because an application may already
                               have read a part; operation_is_unneeded() leaves out more */
    const char *executable; /* of the application that starts next to the replay:
                               operations_beside_application(); NULL: none. Outlives the Replay */
    const bool *done; /* volumes of the pack that were replayed before and are left out, by their
                         index; or NULL. Outlives the Replay */
    EarlierPack earlier[REPLAY_EARLIER_MAX]; /* what these replays have read or will read is left
                                                out, unless samples show that it has left memory */
    const char *marker;  /* marker.h: removed if a filesystem of the pack is missing; NULL: none */
    unsigned of_replays; /* the process runs at most so many replays at once; each uses that part of
                            its file descriptors. 0: one */
    int done_signal;     /* sent to the thread that called replay_start() when all is done */
} ReplayOptions;

typedef struct Replay Replay;

/* Starts a replay. The pack must outlive the replay. A replay cannot be freed while an operation is
 * under way. A process that does not wait for the operation must end with _exit(2). The caller
 * blocks done_signal and every signal that it waits for. Returns 0, -ENOMEM, or -EAGAIN (no
 * thread). */
int replay_start(const Pack *p, const ReplayOptions *o, Replay **ret);

/* Stores the counts so far in *ret. Returns true if the replay is done; *ret_error is then 0, or
 * the negative errno of finding the filesystems or of allocating memory. `ret_error` may be NULL.
 * Operations that were not begun count as stopped. */
bool replay_result(Replay *x, ReplayResult *ret, int *ret_error);

/* Changes order and priority of the remaining operations, because a deadline has passed or a login
 * has begun. Returns at once. */
void replay_hurry(Replay *x, ReplayOrder order, IoClass io_class);

/* Drops all operations that were not begun; they count as stopped. Returns at once; the replay is
 * done soon. */
void replay_stop(Replay *x);

/* Sets done[i] to true for each volume i of the pack that was mounted. To be called when the replay
 * is done. */
void replay_mark_mounted(const Replay *x, bool *done);

/* Frees the replay. To be called when the replay is done. */
Replay *replay_free(Replay *x);
