/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Lets a thread access a disk without waiting forever if the disk does not answer. A lookup or an
 * open that waits for a disk ends only when the disk answers; often not even SIGKILL ends it. The
 * access is therefore made by another thread, which serves one filesystem at a time, and the caller
 * waits for that thread for a limited time. A thread that hangs is left behind with its argument.
 * While it hangs, further calls for its filesystem fail at once. */

#include "base/time-util.h"

#include <stdbool.h>
#include <stdint.h>

/* How long a caller waits for a call that makes a few reads. */
#define DISK_CALL_USEC USEC_PER_SEC

/* After this many calls have timed out, further calls for the filesystem fail at once. After a
 * minute without calls they are tried again, because another disk may then have its number. */
#define DISK_CALL_HANGS_MAX 8U

/* The maximum number of threads. Further filesystems use idle threads. If all threads hang,
 * calls for further filesystems fail. */
#define DISK_CALL_MAX 16U

/* Describes a call. The argument begins with this. */
typedef struct DiskJob {
    void (*run)(struct DiskJob *job);  /* makes the access; called in another thread */
    void (*free)(struct DiskJob *job); /* frees the job and what it owns */
    usec_t limit;                      /* how long the caller waits; 0: DISK_CALL_USEC */
} DiskJob;

/* Runs job->run(job) in a thread for the filesystem with that st_dev, and waits until it has
 * ended. `dev` 0: the filesystem is not expected to hang, and this thread makes the access. Returns
 * 0, and the caller still owns the job; -ETIMEDOUT if the filesystem does not answer, or -EAGAIN if
 * there is no thread: then the job belongs to disk_call(), which frees it. The job must therefore
 * own everything that it uses. */
int disk_call(uint64_t dev, DiskJob *job);

/* Returns true if a call for the filesystem has not ended in time, and still has not ended. */
bool disk_call_hangs(uint64_t dev);
