/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "relocate/move-extents.h"

#include "device/block-device.h"

#include <endian.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* How often space is allocated to find fewer runs. */
#define ATTEMPTS_MAX 8U

/* The kernel moves at most this many bytes in one call, because it looks for no signal meanwhile.
 */
#define STEP_BYTES (UINT64_C(4) << 20)

/* Documentation/filesystems/ext4/super.rst: the superblock begins at 1024 bytes, and
 * s_feature_compat lies at 0x5c in it. */
#define FEATURE_COMPAT_AT  (1024 + 0x5c)
#define COMPAT_HAS_JOURNAL 0x4U

bool filesystem_has_journal(uint64_t block_dev)
{
    _cleanup_close_ int fd = block_device_open(block_dev);
    uint32_t features;

    return fd >= 0 &&
           pread(fd, &features, sizeof(features), FEATURE_COMPAT_AT) == (ssize_t)sizeof(features) &&
           le32toh(features) & COMPAT_HAS_JOURNAL;
}

/* fs/ext4/ext4.h; no header of the user space has them. The numbers are blocks. */
struct move_extent {
    uint32_t reserved;
    uint32_t donor_fd;
    uint64_t orig_start;
    uint64_t donor_start;
    uint64_t len;
    uint64_t moved_len;
};
#define EXT4_IOC_MOVE_EXT _IOWR('f', 15, struct move_extent)

static size_t count_runs(const ExtentList *l)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++)
        n += i == 0 ||
             l->extents[i].physical != l->extents[i - 1].physical + l->extents[i - 1].length;
    return n;
}

static int allocate(int root_fd, uint64_t bytes, int *ret, ExtentList *extents)
{
    _cleanup_close_ int fd = openat(root_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    int r;

    if (fd < 0)
        return -errno;
    if (fallocate(fd, 0, 0, (off_t)bytes) < 0)
        return -errno;
    r = extents_read_allocated(fd, EXTENTS_PER_FILE_MAX, extents);
    if (r >= 0)
        *ret = TAKE_FD(fd);
    return r;
}

/* Returns whether one donor more fits. Only the donor that is used may take the last free space:
 * `first` says that there is none yet. */
static bool have_space(int root_fd, uint64_t bytes, bool first)
{
    struct statvfs s;

    if (fstatvfs(root_fd, &s) < 0)
        return false;
    return (uint64_t)s.f_bavail * s.f_frsize >=
           bytes + (first ? bytes / 10 : bytes + (uint64_t)s.f_blocks * s.f_frsize / 20);
}

int donor_make(int root_fd, uint64_t bytes, int *ret, ExtentList *extents)
{
    int fds[ATTEMPTS_MAX], best = -1, r = 0;
    size_t n = 0, best_runs = SIZE_MAX;

    /* The donors of earlier attempts stay allocated, so that the next one gets other space. */
    while (n < ATTEMPTS_MAX && best_runs > 1 && have_space(root_fd, bytes, n == 0)) {
        _cleanup_extent_list_ ExtentList l = {0};

        r = allocate(root_fd, bytes, &fds[n], &l);
        if (r < 0)
            break;
        if (count_runs(&l) < best_runs) {
            best_runs = count_runs(&l);
            best = (int)n;
            extent_list_done(extents);
            *extents = l;
            l = (ExtentList){0};
        }
        n++;
    }
    for (size_t i = 0; i < n; i++)
        if ((int)i != best)
            close(fds[i]);
    if (best < 0)
        return r < 0 ? r : -ENOSPC;
    *ret = fds[best];
    return 0;
}

int move_extents(int fd, int donor_fd, uint64_t offset, uint64_t donor_offset, uint64_t length)
{
    struct statvfs s;
    struct stat st;
    uint64_t end;

    if (fstatvfs(fd, &s) < 0 || fstat(fd, &st) < 0)
        return -errno;
    /* A part ends at the end of a page. If blocks are smaller than pages, that may be behind the
     * last block of the file, where the kernel moves nothing. */
    end = MIN((offset + length) / s.f_bsize, DIV_ROUND_UP((uint64_t)st.st_size, s.f_bsize));
    for (uint64_t at = offset / s.f_bsize; at < end;) {
        struct move_extent m = {
                .donor_fd = (uint32_t)donor_fd,
                .orig_start = at,
                .donor_start = donor_offset / s.f_bsize + at - offset / s.f_bsize,
                .len = MIN(end - at, MAX(STEP_BYTES / s.f_bsize, UINT64_C(1))),
        };

        if (ioctl(fd, EXT4_IOC_MOVE_EXT, &m) < 0)
            return -errno;
        if (m.moved_len == 0)
            return -EBUSY;
        at += m.moved_len;
    }
    return 0;
}
