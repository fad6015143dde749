/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Carries operations out: the only file of headstart-replay that reads what the pack names. */

#include "base/time-util.h"
#include "replay/mounted.h"
#include "replay/operations.h"

#include <stdatomic.h>

/* Why an operation was not carried out; counted per reason. */
typedef enum ReplaySkip {
    REPLAY_SKIP_UNMOUNTED, /* its filesystem is not mounted */
    REPLAY_SKIP_DEVICE,    /* its block device cannot be opened, or has another size */
    REPLAY_SKIP_GONE,      /* the path is not there any more */
    REPLAY_SKIP_TYPE,      /* the path is no regular file or directory now */
    REPLAY_SKIP_REPLACED,  /* another inode, size or time: not the file that was planned */
    REPLAY_SKIP_DENIED,    /* may not be opened */
    REPLAY_SKIP_ERROR,     /* reading failed, or anything else */
    REPLAY_SKIP_STOPPED,   /* not reached: told to stop */
    _REPLAY_SKIP_MAX,
    _REPLAY_SKIP_INVALID = -EINVAL,
} ReplaySkip;

const char *replay_skip_to_string(ReplaySkip s);

typedef struct ReplayResult {
    uint64_t n_metadata, n_opened, n_data; /* carried out */
    uint64_t metadata_bytes, data_bytes;
    uint64_t n_skipped[_REPLAY_SKIP_MAX]; /* files and metadata ranges; not data of a skipped file */
    usec_t duration_usec;
    bool waited; /* everything was resident at the end */
} ReplayResult;

typedef struct ReplayOptions {
    bool wait;             /* return when all is resident */
    atomic_bool *stop;     /* set by a signal: stop as soon as may be; may be NULL */
    uint64_t window_bytes; /* at most so much asked for and not yet there, per stream */
} ReplayOptions;

/* More than the elevator can sort, little enough that stopping is prompt. */
#define REPLAY_WINDOW_DEFAULT (32ULL * 1024 * 1024)

/* 0, or -ENOMEM. Single operations that fail are counted in *ret, not an error. */
int replay_execute(const Pack *p, const OperationList *l, const MountedSegment *mounted,
                   const ReplayOptions *o, ReplayResult *ret);
