/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One pass over what is wanted: looks, then reads what is missing. */

#include "base/clock.h"
#include "base/directory.h"
#include "base/open.h"
#include "base/ownership.h"
#include "record/cachestat.h"
#include "record/residency.h"
#include "session/prefetch-internal.h"
#include "volume/block-device.h"
#include "volume/placed-ranges.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define CHUNK         (128U * 1024)
#define LOOKUPS_MAX   4096U /* entries of one directory whose inodes are read */
#define FILES_AT_ONCE 128U  /* descriptors held until what is missing of them is read */

/* A file or block device that is open until its missing ranges are read. */
typedef struct OpenFile {
    int fd;
    const char *path; /* the job's */
} OpenFile;

typedef struct PrefetchPass {
    MountDirs places;
    OpenFile files[FILES_AT_ONCE];
    size_t n_files;
    PlacedRangeList missing; /* `file`: into files */
    ExtentList extents;
    uint64_t missing_bytes;
} PrefetchPass;

/* Waits until the chunk's last page is there. */
static void await(int fd, uint64_t end)
{
    char byte;

    if (pread(fd, &byte, 1, (off_t)(end - 1)) < 0)
        return;
}

/* Asks for a chunk, then waits for the one before: two are under way at most, so that on devices
 * without a scheduler, too, others come first. */
static void read_missing_ranges(PrefetchState *s, PrefetchPass *p)
{
    uint64_t n_reads = 0, bytes = 0, before_end = 0;
    int before = -1;

    placed_ranges_sort(&p->missing);
    for (size_t i = 0; i < p->missing.n; i++) {
        const PlacedRange *x = &p->missing.ranges[i];
        const OpenFile *f = &p->files[x->file];
        uint64_t at = x->offset, end = x->offset + x->length;

        while (at < end && !s->is_over(s->arg)) {
            uint64_t length = MIN(end - at, (uint64_t)CHUNK);

            /* Not readahead(2), which refused block devices in Linux 4.19 to 6.6. */
            if (posix_fadvise(f->fd, (off_t)at, (off_t)length, POSIX_FADV_WILLNEED) != 0)
                break;
            at += length;
            if (before >= 0)
                await(before, before_end);
            before = f->fd;
            before_end = at;
            n_reads++;
            bytes += length;
        }
        /* Out of memory: then it may be read once too often. */
        if (at > x->offset)
            (void)refetch_backoff_note_read(&s->backoff, f->path, clock_now(CLOCK_MONOTONIC),
                                            (Range){x->offset, at});
    }
    if (before >= 0)
        await(before, before_end);
    for (size_t i = 0; i < p->n_files; i++)
        close(p->files[i].fd);
    p->n_files = p->missing.n = 0;
    s->tell(s->arg, &(PrefetchReport){.n_reads = n_reads, .read_bytes = bytes});
}

/* What is missing */

/* Splits the missing ranges of an open file by where they lie. Takes over the descriptor. 0 or
 * -ENOMEM. */
static int add_missing(PrefetchPass *p, int fd, const char *path, uint64_t disk,
                       const RangeSet *missing, const Extent *extents, size_t n_extents)
{
    uint32_t file = (uint32_t)p->n_files;
    int r = 0;

    p->files[p->n_files++] = (OpenFile){fd, path};
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM); /* reads nothing beyond what is asked for */
    for (size_t i = 0; r >= 0 && i < missing->n; i++) {
        const PlacedRange range = {
                .file = file,
                .offset = missing->ranges[i].start,
                .length = missing->ranges[i].end - missing->ranges[i].start,
                .disk = disk,
        };

        r = placed_ranges_add(&p->missing, &range, 1, extents, n_extents, PLACED_HOLES_KEEP);
    }
    p->missing_bytes += range_set_total(missing);
    return r;
}

/* False also if cachestat does not say. */
static bool is_resident(const PrefetchState *s, int fd, Range x)
{
    return s->cachestat && cachestat_is_resident(fd, x.start, x.end - x.start) > 0;
}

static bool are_resident(const PrefetchState *s, int fd, const RangeSet *wanted)
{
    for (size_t i = 0; i < wanted->n; i++)
        if (!is_resident(s, fd, wanted->ranges[i]))
            return false;
    return true;
}

/* What of it lies before the end. 0 or -ENOMEM. */
static int clip(const RangeSet *wanted, uint64_t size, RangeSet *ret)
{
    Range whole = {0, size};

    return range_set_intersect(wanted, &(RangeSet){&whole, size > 0, size > 0}, ret);
}

/* What of the file is wanted and not there. 0 or a negative errno. */
static int find_missing(const PrefetchState *s, int fd, uint64_t size, const RangeSet *wanted,
                        RangeSet *ret)
{
    _cleanup_range_set_ RangeSet resident = {0}, there = {0};
    int k = clip(wanted, size, &there);

    if (k < 0 || are_resident(s, fd, &there))
        return k;
    k = residency_read(fd, size, USEC_INFINITY, &resident);
    /* Not told: reading what is there costs no I/O. */
    if (k < 0 && k != -ENOMEM)
        k = 0;
    return k < 0 ? k : range_set_subtract(&there, &resident, ret);
}

static int examine_file(PrefetchState *s, PrefetchPass *p, int path_fd, const struct stat *st,
                        const PrefetchFile *f)
{
    _cleanup_range_set_ RangeSet missing = {0};
    _cleanup_close_ int fd = -EBADF;
    int k;

    if (f->ranges.n == 0)
        return 0; /* its inode was wanted */
    fd = fd_reopen_noatime(path_fd, O_RDONLY);
    if (fd < 0)
        return fd;
    k = find_missing(s, fd, (uint64_t)st->st_size, &f->ranges, &missing);
    if (k >= 0)
        k = refetch_backoff_filter(s->backoff, f->path, clock_now(CLOCK_MONOTONIC), &missing);
    if (k < 0 || missing.n == 0)
        return k;
    if (extents_read(fd, &p->extents) < 0)
        p->extents.n = 0; /* then in the order of the file */
    return add_missing(p, TAKE_FD(fd), f->path, st->st_dev, &missing, p->extents.extents,
                       p->extents.n);
}

static int examine_directory(PrefetchState *s, int path_fd, const PrefetchFile *f)
{
    _cleanup_close_ int fd = -EBADF;

    if (!refetch_backoff_list_due(&s->backoff, f->path, clock_now(CLOCK_MONOTONIC),
                                  PREFETCH_LIST_USEC))
        return 0;
    fd = fd_reopen_noatime(path_fd, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return fd;
    directory_read_ahead(fd, LOOKUPS_MAX);
    s->tell(s->arg, &(PrefetchReport){.n_directories = 1});
    return 0;
}

/* The block device of the filesystem with that UUID, if its metadata is in the page cache of that
 * and a filesystem is mounted from it still. A descriptor or a negative errno. */
static int open_volume(PrefetchState *s, const PrefetchPass *p, const char *uuid, uint64_t *ret_dev)
{
    if (!uuid[0])
        return -ENODEV;
    if (!s->volumes_read) {
        int k = volume_table_read(AT_FDCWD, s->root, &s->volumes);

        if (k < 0)
            return k;
        s->volumes_read = true;
    }
    for (size_t i = 0; i < s->volumes.n; i++) {
        const Volume *v = &s->volumes.volumes[i];

        if (strcmp(v->uuid, uuid) != 0 || strncmp(v->fstype, "ext", 3) != 0 ||
            !mount_dirs_contain(&p->places, v->mount_dev))
            continue;
        *ret_dev = v->block_dev;
        return block_device_open(v->block_dev);
    }
    return -ENODEV;
}

/* Metadata lies where its range says. Where cachestat cannot tell, all of it counts as missing, and
 * reading what is there costs no I/O. */
static int examine_metadata(PrefetchState *s, PrefetchPass *p, const PrefetchFile *f)
{
    _cleanup_range_set_ RangeSet there = {0}, missing = {0};
    _cleanup_close_ int fd = -EBADF;
    uint64_t dev = 0;
    off_t size;
    int k;

    fd = open_volume(s, p, f->path, &dev);
    if (fd < 0)
        return fd;
    size = lseek(fd, 0, SEEK_END);
    k = clip(&f->ranges, size > 0 ? (uint64_t)size : 0, &there);
    for (size_t i = 0; k >= 0 && i < there.n; i++)
        if (!is_resident(s, fd, there.ranges[i]))
            k = range_set_add(&missing, there.ranges[i].start, there.ranges[i].end);
    if (k >= 0)
        k = refetch_backoff_filter(s->backoff, f->path, clock_now(CLOCK_MONOTONIC), &missing);
    if (k < 0 || missing.n == 0)
        return k;
    /* A block device lies where it is. */
    return add_missing(p, TAKE_FD(fd), f->path, dev, &missing, &(Extent){.length = (uint64_t)size},
                       1);
}

static int examine(PrefetchState *s, PrefetchPass *p, const PrefetchFile *f)
{
    _cleanup_close_ int fd = -EBADF;
    struct stat st;

    if (f->kind == PREFETCH_METADATA)
        return examine_metadata(s, p, f);
    fd = mount_dirs_open_path(&p->places, f->path, &st);
    if (fd < 0)
        return fd;
    if ((f->kind == PREFETCH_DIRECTORY) != !!S_ISDIR(st.st_mode))
        return -EINVAL;
    if (!ownership_allows(st.st_uid, st.st_gid, st.st_mode, s->uid)) {
        s->refuse(s->arg, f);
        return 0;
    }
    return S_ISDIR(st.st_mode) ? examine_directory(s, fd, f) : examine_file(s, p, fd, &st, f);
}

bool prefetch_pass_run(PrefetchState *s, const PrefetchFile *files, size_t n, size_t *at)
{
    size_t begin = *at, end = n - begin > PREFETCH_PASS_FILES ? begin + PREFETCH_PASS_FILES : n;
    PrefetchPass p = {0};
    uint64_t n_skipped = 0;
    size_t i = begin;

    if (mount_dirs_read(s->root, &p.places) >= 0)
        for (; i < end && p.missing_bytes < PREFETCH_PASS_BYTES && !s->is_over(s->arg); i++) {
            n_skipped += examine(s, &p, &files[i]) < 0;
            if (p.n_files == FILES_AT_ONCE)
                read_missing_ranges(s, &p);
        }
    read_missing_ranges(s, &p);
    mount_dirs_done(&p.places);
    extent_list_done(&p.extents);
    placed_range_list_done(&p.missing);
    s->tell(s->arg, &(PrefetchReport){.n_passes = 1,
                                      .n_files = i - begin,
                                      .n_skipped = n_skipped,
                                      .pass_files = i - begin,
                                      .pass_missing_bytes = p.missing_bytes});
    *at = i;
    return i > begin && i < n && !s->is_over(s->arg);
}

void prefetch_state_done(PrefetchState *s)
{
    s->backoff = refetch_backoff_free(s->backoff);
    volume_table_done(&s->volumes);
}
