/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/disk-access.h"

#include "base/open.h"
#include "system/disk-call.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* libext2fs reads a block for many of the files of a plan. Nothing waits for a plan. */
#define LIBEXT2FS_USEC (30 * USEC_PER_SEC)

typedef struct AccessJob {
    DiskJob job;
    int dir_fd, path_fd; /* or negative */
    char *path;
    size_t max;
    ExtentList extents;
    MetadataDeriver *deriver;
    DerivedMetadata *derived;
    size_t n_derived;
    int r;
} AccessJob;

static void job_free(DiskJob *job)
{
    AccessJob *x = (AccessJob *)job;

    closep(&x->dir_fd);
    closep(&x->path_fd);
    extent_list_done(&x->extents);
    metadata_deriver_free(x->deriver);
    free(x->derived);
    free(x->path);
    free(x);
}

static AccessJob *job_new(void (*run)(DiskJob *job))
{
    AccessJob *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    x->job = (DiskJob){.run = run, .free = job_free};
    x->dir_fd = x->path_fd = -EBADF;
    return x;
}

static void run_open(DiskJob *job)
{
    AccessJob *x = (AccessJob *)job;

    x->r = open_beneath(x->dir_fd, x->path);
    if (x->r >= 0)
        x->path_fd = x->r;
}

int disk_open_beneath(uint64_t call_dev, int dir_fd, const char *path)
{
    AccessJob *x;
    int r;

    if (call_dev == 0 || dir_fd < 0)
        return open_beneath(dir_fd, path);
    x = job_new(run_open);
    if (!x)
        return -ENOMEM;
    x->path = strdup(path);
    x->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
    if (!x->path || x->dir_fd < 0) {
        r = x->path ? -errno : -ENOMEM;
        job_free(&x->job);
        return r;
    }
    r = disk_call(call_dev, &x->job);
    if (r < 0)
        return r;
    r = x->r < 0 ? x->r : TAKE_FD(x->path_fd);
    job_free(&x->job);
    return r;
}

static void run_extents(DiskJob *job)
{
    AccessJob *x = (AccessJob *)job;
    _cleanup_close_ int fd = fd_reopen_noatime(x->path_fd, O_RDONLY);

    x->r = fd < 0 ? fd : extents_read(fd, x->max, &x->extents);
}

int disk_read_extents(uint64_t call_dev, int path_fd, size_t max, ExtentList *ret)
{
    AccessJob *x = job_new(run_extents);
    int r;

    if (!x)
        return -ENOMEM;
    x->max = max;
    x->path_fd = fcntl(path_fd, F_DUPFD_CLOEXEC, 0);
    if (x->path_fd < 0) {
        r = -errno;
        job_free(&x->job);
        return r;
    }
    r = disk_call(call_dev, &x->job);
    if (r < 0)
        return r;
    r = x->r;
    if (r >= 0) {
        extent_list_done(ret);
        *ret = x->extents;
        x->extents = (ExtentList){0};
    }
    job_free(&x->job);
    return r;
}

static void run_metadata(DiskJob *job)
{
    AccessJob *x = (AccessJob *)job;

    x->r = metadata_deriver_finish(x->deriver, &x->derived, &x->n_derived);
}

int disk_finish_metadata(uint64_t call_dev, MetadataDeriver *d, DerivedMetadata **ret,
                         size_t *ret_n)
{
    AccessJob *x = job_new(run_metadata);
    int r;

    if (!x) {
        metadata_deriver_free(d);
        return -ENOMEM;
    }
    x->job.limit = LIBEXT2FS_USEC;
    x->deriver = d;
    r = disk_call(call_dev, &x->job);
    if (r < 0)
        return r;
    r = x->r;
    if (r >= 0) {
        *ret = TAKE_PTR(x->derived);
        *ret_n = x->n_derived;
    }
    job_free(&x->job);
    return r;
}
