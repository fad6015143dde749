/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A separate thread with idle I/O priority. It reads the objects that the session cycle has
 * requested and that are not in memory.
 *
 * The thread works in passes. A pass first looks each file up and finds the parts of it that are
 * missing (cachestat(2), else mincore(2)), so that a steady state reads nothing. It follows the
 * order of the requests until PREFETCH_PASS_BYTES are missing or PREFETCH_PASS_FILES are looked up.
 * At the end, and whenever 128 files are open, it reads the missing ranges in physical order
 * (FIEMAP). The bytes under way are limited by a window that yields to other reads
 * (session/prefetch-pace.h).
 *
 * - Looking a file up reads its inode. Listing a directory reads its entries and their inodes. The
 *   kernel does not report whether a directory's entries are still in memory. A directory is
 *   therefore listed when it is first requested and then every PREFETCH_LIST_USEC.
 * - Metadata is read only from ext2/3/4, because these filesystems keep it in the page cache of the
 *   block device. Without cachestat(2) all metadata counts as missing; reading resident data costs
 *   no I/O.
 * - Data that the kernel has reclaimed is read again after increasing delays
 *   (session/refetch-backoff.h).
 *
 * Only regular files and directories on local block-backed filesystems are opened, even if a path
 * leads elsewhere now: no symlink is followed, and no mount or automount is entered.
 *
 * A file or directory is read only if model/ownership.h allows it in the user's set. Otherwise one
 * user could fill memory in the sessions of others. The thread checks the opened file before it
 * reads. prefetch_thread_move_refused() returns the refused paths, so that they do not use up the
 * budget again. */

#include "base/time-util.h"
#include "session/prefetch-request.h"

#define PREFETCH_PASS_BYTES  (128U << 20) /* missing bytes that end the lookups of a pass */
#define PREFETCH_PASS_FILES  20000U       /* looked up in a pass at most */
#define PREFETCH_LIST_USEC   (300 * USEC_PER_SEC)
#define PREFETCH_REFUSED_MAX 20000U

/* Sums since prefetch_thread_new(), except for the last three. */
typedef struct PrefetchReport {
    uint64_t n_passes;      /* ended, interrupted passes included */
    uint64_t n_files;       /* looked up */
    uint64_t n_skipped;     /* deleted, or not of a kind that may be opened */
    uint64_t n_refused;     /* the owner or the mode forbids them (model/ownership.h) */
    uint64_t n_directories; /* listed */
    uint64_t n_reads, read_bytes;
    uint64_t pass_files, pass_missing_bytes; /* of the latest pass */
    bool working;                            /* a request is being executed, or one is waiting */
} PrefetchReport;

typedef struct PrefetchThread PrefetchThread;

/* Starts the thread. The caller has blocked its signals before, so that the thread does not receive
 * them. Paths of requests begin below `root`, a directory as realpath(3) returns it. `uid`: the
 * user of the session; OWNERSHIP_ANYBODY for an unknown user or several users. Returns 0 or a
 * negative errno. */
int prefetch_thread_new(const char *root, uint32_t uid, PrefetchThread **ret);

/* A disk has hung when one access to it has taken this long. mq-deadline alone delays a read of the
 * idle priority for ten seconds on a busy disk, and opening a file may need several reads. */
#define PREFETCH_HANG_USEC (60 * USEC_PER_SEC)
#define PREFETCH_HUNG_MAX  8U

/* Replaces the thread if it hangs in an access to a filesystem that is not on the disk of the root
 * filesystem; this takes up to a second. The new thread has the sums of the report, reads nothing
 * from that filesystem, and waits for a request. After PREFETCH_HUNG_MAX filesystems no further
 * thread is replaced. Returns 1 if the thread was replaced, 0 if not, or a negative errno with *t
 * as it was. */
int prefetch_thread_check(PrefetchThread **t);

/* Stops the thread. If a read hangs for longer than a second (a dead disk), the thread is not
 * awaited and ends with the process. */
PrefetchThread *prefetch_thread_free(PrefetchThread *t);
DEFINE_CLEANUP(PrefetchThread *, prefetch_thread_free);

/* Replaces the previous requests by copies of these. A pass that is under way ends, and another
 * begins. If the previous requests were the same and are still being executed, their execution
 * continues. All requests of one file must share the pointer `path`. Returns 0 or -ENOMEM. */
int prefetch_thread_request(PrefetchThread *t, const PrefetchRequest *requests, size_t n);

void prefetch_thread_report(PrefetchThread *t, PrefetchReport *ret);

/* Paths in the form in which the requests name them. */
typedef struct PrefetchPaths {
    char **paths;
    size_t n, allocated;
} PrefetchPaths;

void prefetch_paths_done(PrefetchPaths *p);

/* Moves the paths that were refused since the last call to *ret, which the caller frees with
 * prefetch_paths_done(). At most PREFETCH_REFUSED_MAX are kept between two calls. */
void prefetch_thread_move_refused(PrefetchThread *t, PrefetchPaths *ret);
