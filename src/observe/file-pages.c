/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "observe/file-pages.h"

#include "base/open.h"
#include "observe/residency.h"
#include "observe/resident-ranges.h"
#include "system/cachestat.h"
#include "system/disk-call.h"

#include <fcntl.h>
#include <unistd.h>

typedef struct PagesJob {
    DiskJob job;
    int path_fd;
    FilePagesQuery query;
    RangeSet ranges;
    int r;
} PagesJob;

static void job_free(DiskJob *job)
{
    PagesJob *x = (PagesJob *)job;

    if (x->path_fd >= 0)
        close(x->path_fd);
    range_set_done(&x->ranges);
    free(x);
}

/* Adds the pages that were read and have been reclaimed. Returns 0, 1 if the ranges are not
 * complete, or -ENOMEM. */
static int add_reclaimed(int fd, const FilePagesQuery *q, RangeSet *ranges)
{
    _cleanup_range_set_ RangeSet seen = {0};
    int cut, r;

    if (cachestat_count(fd, CACHESTAT_EVICTED, 0, q->size_bytes) <= 0)
        return 0;
    cut = cachestat_ranges(fd, CACHESTAT_SEEN, q->size_bytes, q->deadline, &seen);
    if (cut < 0)
        return cut == -ENOMEM ? cut : 0;
    r = range_set_unite(ranges, &seen);
    return r < 0 ? r : cut;
}

static void job_run(DiskJob *job)
{
    PagesJob *x = (PagesJob *)job;
    _cleanup_close_ int fd = fd_reopen(x->path_fd, O_RDONLY | O_NOATIME);
    int r;

    if (fd < 0)
        return;
    x->r = residency_read(fd, x->query.size_bytes, x->query.deadline, &x->ranges);
    if (x->r < 0 || !x->query.reclaimed)
        return;
    r = add_reclaimed(fd, &x->query, &x->ranges);
    x->r = r < 0 ? r : x->r || r;
}

int file_pages_read(uint64_t call_dev, int path_fd, const FilePagesQuery *query, RangeSet *ret)
{
    PagesJob *x = calloc(1, sizeof(*x));
    int r;

    if (!x)
        return -ENOMEM;
    *x = (PagesJob){
            .job = {job_run, job_free},
            .path_fd = fcntl(path_fd, F_DUPFD_CLOEXEC, 0),
            .query = *query,
    };
    if (x->path_fd < 0) {
        r = -errno;
        free(x);
        return r;
    }
    r = disk_call(call_dev, &x->job);
    if (r < 0)
        return r;
    r = x->r;
    if (r >= 0 && range_set_unite(ret, &x->ranges) < 0)
        r = -ENOMEM;
    job_free(&x->job);
    return r;
}
