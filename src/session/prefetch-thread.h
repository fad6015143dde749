/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Brings in what the cycle requests and is not in memory, in a thread of its own at idle I/O
 * priority.
 *
 * Residency is looked at first (cachestat(2), else mincore(2)), so that a steady state reads
 * nothing; what the kernel takes back is fetched again rarer and rarer (session/refetch-backoff.h).
 * What is missing is taken in the order in which it is wanted until a pass has enough, then read in
 * physical order (FIEMAP), a chunk ahead of the one that is awaited. Looking a file up brings in
 * its inode, listing a directory its entries and their inodes; a directory is listed when it is
 * first wanted and then every PREFETCH_LIST_USEC, since nothing tells whether its entries are still
 * there. Metadata is that of ext2/3/4, which is in the page cache of the block device. Where there
 * is no cachestat(2) all of it counts as missing when it is due: what is there costs no I/O.
 *
 * Beside those devices only regular files and directories on local block-backed filesystems are
 * opened, whatever a path has become: no symlink is followed, no mount or automount entered.
 *
 * A file or directory is read only if base/ownership.h allows it in the user's set. Otherwise one
 * user could fill memory in the sessions of others. The thread checks what it has opened, before it
 * reads; prefetch_thread_take_refused() returns the paths, so that they do not use up the budget
 * again. */

#include "session/prefetch-request.h"

#define PREFETCH_PASS_BYTES (128U << 20)
#define PREFETCH_PASS_FILES 20000U
#define PREFETCH_LIST_USEC  (300 * USEC_PER_SEC)

/* Sums since prefetch_thread_new(), but for what is said to be of the latest pass. */
typedef struct PrefetchReport {
    uint64_t n_passes;      /* ended, interrupted ones included */
    uint64_t n_files;       /* looked up */
    uint64_t n_skipped;     /* gone, or not what may be opened */
    uint64_t n_refused;     /* the owner or the mode forbids them (base/ownership.h) */
    uint64_t n_directories; /* listed */
    uint64_t n_reads, read_bytes;
    uint64_t pass_files, pass_missing_bytes; /* of the latest */
    bool working;
} PrefetchReport;

typedef struct PrefetchThread PrefetchThread;

/* Paths begin below `root`, a directory as realpath(3) has it. `uid`: whose session it is;
 * OWNERSHIP_ANYBODY if that is not known. Starts the thread; signals are to be blocked before. 0 or
 * a negative errno. */
int prefetch_thread_new(const char *root, uint32_t uid, PrefetchThread **ret);

/* Stops the thread. If it hangs in a dead disk it is left behind after a second. */
PrefetchThread *prefetch_thread_free(PrefetchThread *r);
DEFINE_CLEANUP(PrefetchThread *, prefetch_thread_free);

/* From now on this is wanted, and nothing else: a pass under way ends and another begins. Copies.
 * 0 or -ENOMEM. */
int prefetch_thread_request(PrefetchThread *r, const PrefetchRequest *requests, size_t n);

void prefetch_thread_report(PrefetchThread *r, PrefetchReport *ret);

/* Paths, as the requests named them. */
typedef struct PrefetchPaths {
    char **paths;
    size_t n, allocated;
} PrefetchPaths;

void prefetch_paths_done(PrefetchPaths *p);

/* Moves the paths that were refused since the last call to *ret, which the caller frees with
 * prefetch_paths_done(). At most PREFETCH_REFUSED_MAX are kept between two calls. */
#define PREFETCH_REFUSED_MAX 20000U
void prefetch_thread_take_refused(PrefetchThread *r, PrefetchPaths *ret);
