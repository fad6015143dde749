/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "execute/sample.h"

#include "base/open.h"
#include "execute/opening.h"
#include "system/cachestat.h"

#include <fcntl.h>
#include <sys/stat.h>

#define SAMPLES_MAX 16U

static bool metadata_is_resident(const Pack *p, const MountedTable *mounted)
{
    for (uint32_t v = 0; v < mounted->n; v++) {
        const PackVolume *s = &p->volumes[v];
        uint32_t n = le32toh(s->n_metadata), n_samples = MIN(n, SAMPLES_MAX);

        for (uint32_t i = 0; i < n_samples && mounted->volumes[v].device_fd >= 0; i++) {
            const PackMetadata *m =
                    &p->metadata[le32toh(s->first_metadata) + (uint64_t)i * n / n_samples];

            if (m->reader == METADATA_OF_DEVICE &&
                cachestat_is_resident(mounted->volumes[v].device_fd, le64toh(m->offset),
                                      le64toh(m->length)) <= 0)
                return false;
        }
    }
    return true;
}

static int volume_of_data(const Pack *p, uint32_t data)
{
    for (uint32_t v = 0; v < le32toh(p->header->n_volumes); v++)
        if (data - le32toh(p->volumes[v].first_data) < le32toh(p->volumes[v].n_data))
            return (int)v;
    return -1;
}

/* Opens the file for cachestat(2) without an access to the disk, which may sleep or hang. Returns a
 * descriptor, -EAGAIN if the kernel has dropped the file's name, and with it its pages, or another
 * negative errno. */
static int open_cached(int root_fd, const char *path, const PackFile *f)
{
    _cleanup_close_ int fd = open_beneath_cached(root_fd, path);
    struct stat st;

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    return opening_is_planned(f, &st) ? fd_reopen_noatime(fd, O_RDONLY) : -ESTALE;
}

static bool data_is_resident(const Pack *p, const MountedTable *mounted)
{
    uint32_t n = le32toh(p->header->n_data), n_samples = MIN(n, SAMPLES_MAX);

    for (uint32_t i = 0; i < n_samples; i++) {
        uint32_t k = (uint32_t)((uint64_t)i * n / n_samples);
        const PackData *d = &p->data[k];
        const PackFile *f = &p->files[le32toh(d->file)];
        int volume = volume_of_data(p, k);
        _cleanup_close_ int fd = -EBADF;

        if (volume < 0 || mounted->volumes[volume].root_fd < 0)
            continue;
        fd = open_cached(mounted->volumes[volume].root_fd, pack_string(p, f->path), f);
        if (fd == -EAGAIN || fd == -EINVAL) /* before Linux 5.12 */
            return false;
        if (fd >= 0 && cachestat_is_resident(fd, le64toh(d->offset), le64toh(d->length)) <= 0)
            return false;
    }
    return true;
}

bool pack_is_resident(const Pack *p, const MountedTable *mounted)
{
    return metadata_is_resident(p, mounted) && data_is_resident(p, mounted);
}
