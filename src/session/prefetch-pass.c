/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One pass of the prefetch thread: it finds the missing ranges, and then reads them. */

#include "base/clock.h"
#include "base/directory.h"
#include "base/open.h"
#include "device/block-device.h"
#include "model/ownership.h"
#include "observe/residency.h"
#include "session/mount-dirs.h"
#include "session/prefetch-internal.h"
#include "system/cachestat.h"
#include "volume/placed-ranges.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define CHUNK_BYTES    (128U * 1024)
#define CHUNKS_MAX     16U
#define PAGE_BYTES     4096U
#define PAUSE_USEC     (20 * USEC_PER_MSEC)
#define PAUSE_MAX_USEC (10 * USEC_PER_SEC)
#define WAIT_USEC      (5 * USEC_PER_MSEC) /* between two looks at the disk's queue */
#define LOOKUPS_MAX    4096U               /* entries of one directory whose inodes are read */
#define OPEN_FILES_MAX 128U /* when this many are open, their missing ranges are read */

/* A file or block device that stays open until its missing ranges are read. */
typedef struct OpenFile {
    int fd;
    const char *path; /* borrowed from the job */
} OpenFile;

typedef struct PrefetchPass {
    MountDirs mounts;
    OpenFile files[OPEN_FILES_MAX];
    size_t n_files;
    PlacedRangeList missing; /* `file` is an index into `files` */
    ExtentList extents;
    uint64_t missing_bytes;
    bool stopped; /* because of heat or short memory, or cancelled */
} PrefetchPass;

/* --- reading ---------------------------------------------------------------------------------- */

/* A chunk that was requested from the kernel. */
typedef struct Chunk {
    int fd;
    uint64_t disk; /* for PrefetchState.touch() */
    uint64_t end;
    uint64_t length;
    usec_t begun; /* on the monotonic clock */
} Chunk;

/* The chunks under way. */
typedef struct Flight {
    Chunk chunks[CHUNKS_MAX]; /* a ring */
    uint32_t oldest, n;
    uint64_t bytes;
    uint64_t arrived_bytes;
    usec_t last_usec; /* the time that the last chunk took */
} Flight;

/* Waits until the last page of the oldest chunk is in memory. */
static void await_oldest(const PrefetchState *s, Flight *f)
{
    const Chunk *c = &f->chunks[f->oldest];
    char byte;

    s->touch(s->arg, c->disk);
    /* A read error also ends the wait, and needs no other reaction, because the application that
     * reads the file gets it, too. */
    if (pread(c->fd, &byte, 1, (off_t)(c->end - 1)) == 1)
        f->arrived_bytes += c->length;
    s->touch(s->arg, 0);
    f->last_usec = clock_now(CLOCK_MONOTONIC) - c->begun;
    f->bytes -= c->length;
    f->oldest = (f->oldest + 1) % CHUNKS_MAX;
    f->n--;
}

/* Returns how long a chunk waits while others use the disk. Less than one hundredth of their
 * requests then meets a chunk, so that the 99th percentile of their time stays. */
static usec_t pause_usec(const Flight *f)
{
    return MIN(MAX(100 * f->last_usec, PAUSE_USEC), PAUSE_MAX_USEC);
}

/* Waits until the window allows another chunk. While others use the disk the window is empty; then
 * one chunk follows after a pause. Returns the length of the chunk, at most `wanted`; 0 if the pass
 * must end, because it was cancelled, or because of heat or short memory. */
static uint64_t await_turn(PrefetchState *s, Flight *f, uint64_t device, uint64_t wanted)
{
    usec_t begun = clock_now(CLOCK_MONOTONIC);

    while (!s->is_cancelled(s->arg)) {
        uint64_t window = prefetch_pace_update(&s->pace, device, f->arrived_bytes, f->n);
        uint64_t length = MIN(wanted, (uint64_t)CHUNK_BYTES);

        if (prefetch_pace_must_stop(&s->pace))
            return 0;
        if (window > 0)
            length = MIN(length, MAX(window / PAGE_BYTES, UINT64_C(1)) * PAGE_BYTES);
        if (f->n == 0 ? window > 0 || clock_now(CLOCK_MONOTONIC) >= begun + pause_usec(f)
                      : f->n < CHUNKS_MAX && f->bytes + length <= window)
            return length;
        if (f->n > 0)
            await_oldest(s, f);
        else
            usleep(WAIT_USEC);
    }
    return 0;
}

/* Requests the range from the kernel chunk by chunk, as the window allows. Other readers therefore
 * wait for at most one window, even on devices without a scheduler. Returns false if the pass must
 * end. */
static bool read_range(PrefetchState *s, const OpenFile *f, const PlacedRange *x, Flight *flight,
                       PrefetchReport *report)
{
    uint64_t at = x->offset, end = x->offset + x->length, length = 0;

    while (at < end && (length = await_turn(s, flight, x->disk, end - at)) > 0) {
        int r;

        s->touch(s->arg, x->disk);
        /* readahead(2) refuses block devices in Linux 4.19 to 6.6. */
        r = posix_fadvise(f->fd, (off_t)at, (off_t)length, POSIX_FADV_WILLNEED);
        s->touch(s->arg, 0);
        if (r != 0)
            break;
        at += length;
        flight->chunks[(flight->oldest + flight->n++) % CHUNKS_MAX] =
                (Chunk){f->fd, x->disk, at, length, clock_now(CLOCK_MONOTONIC)};
        flight->bytes += length;
        report->n_reads++;
        report->read_bytes += length;
    }
    /* If memory runs out, the range may be read again too early. */
    if (at > x->offset)
        (void)refetch_backoff_note_read(&s->backoff, f->path, clock_now(CLOCK_MONOTONIC),
                                        (Range){x->offset, at - x->offset});
    return at >= end || length > 0;
}

static void read_missing(PrefetchState *s, PrefetchPass *p)
{
    PrefetchReport report = {0};
    Flight flight = {0};

    placed_ranges_sort(&p->missing);
    prefetch_pace_begin(&s->pace);
    for (size_t i = 0; i < p->missing.n && !p->stopped; i++) {
        const PlacedRange *x = &p->missing.ranges[i];

        p->stopped = !read_range(s, &p->files[x->file], x, &flight, &report);
    }
    while (flight.n > 0)
        await_oldest(s, &flight);
    for (size_t i = 0; i < p->n_files; i++)
        close(p->files[i].fd);
    p->n_files = p->missing.n = 0;
    s->add_report(s->arg, &report);
}

/* --- missing ranges --------------------------------------------------------------------------- */

/* Adds the missing ranges of an open file, split where they are not contiguous on the disk. Takes
 * ownership of the descriptor. Returns 0 or -ENOMEM. */
static int add_missing(PrefetchPass *p, int fd, const char *path, uint64_t disk,
                       const RangeSet *missing, const Extent *extents, size_t n_extents)
{
    uint32_t file = (uint32_t)p->n_files;
    int r = 0;

    p->files[p->n_files++] = (OpenFile){fd, path};
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM); /* prevents reads beyond each range */
    for (size_t i = 0; r >= 0 && i < missing->n; i++) {
        const PlacedRange range = {
                .file = file,
                .offset = missing->ranges[i].offset,
                .length = missing->ranges[i].length,
                .disk = disk,
        };

        r = placed_ranges_add(&p->missing, &range, 1, extents, n_extents, PLACED_HOLES_KEEP);
    }
    p->missing_bytes += range_set_total(missing);
    return r;
}

/* Returns true if all of the range is in memory. Returns false also if cachestat(2) is not
 * available. */
static bool is_resident(const PrefetchState *s, int fd, Range x)
{
    return s->cachestat && cachestat_is_resident(fd, x.offset, x.length) > 0;
}

static bool are_resident(const PrefetchState *s, int fd, const RangeSet *ranges)
{
    for (size_t i = 0; i < ranges->n; i++)
        if (!is_resident(s, fd, ranges->ranges[i]))
            return false;
    return true;
}

/* Computes the part of the requested ranges that lies before `size`. Returns 0 or -ENOMEM. */
static int clip(const RangeSet *requested, uint64_t size, RangeSet *ret)
{
    Range whole = {0, size};

    return range_set_intersect(requested, &(RangeSet){&whole, size > 0, size > 0}, ret);
}

/* Computes the part of a file's requested ranges that is not in memory. Returns 0 or -ENOMEM. */
static int find_missing(const PrefetchState *s, int fd, uint64_t size, const RangeSet *requested,
                        RangeSet *ret)
{
    _cleanup_range_set_ RangeSet resident = {0}, within = {0};
    int r = clip(requested, size, &within);

    if (r < 0 || are_resident(s, fd, &within))
        return r;
    r = residency_read(fd, size, USEC_INFINITY, &resident);
    /* If residency cannot be read, all ranges count as missing; reading resident data costs no I/O.
     */
    if (r == -ENOMEM)
        return r;
    return range_set_subtract(&within, &resident, ret);
}

static int examine_file(PrefetchState *s, PrefetchPass *p, int path_fd, const struct stat *st,
                        const PrefetchFile *f)
{
    _cleanup_range_set_ RangeSet missing = {0};
    _cleanup_close_ int fd = -EBADF;
    int r;

    if (f->ranges.n == 0)
        return 0; /* only the inode was requested, and the lookup has read it */
    fd = fd_reopen_noatime(path_fd, O_RDONLY);
    if (fd < 0)
        return fd;
    r = find_missing(s, fd, (uint64_t)st->st_size, &f->ranges, &missing);
    if (r >= 0)
        r = refetch_backoff_filter(s->backoff, f->path, clock_now(CLOCK_MONOTONIC), &missing);
    if (r < 0 || missing.n == 0)
        return r;
    if (extents_read(fd, EXTENTS_PER_FILE_MAX, &p->extents) < 0)
        p->extents.n = 0; /* the ranges are then read in the order of their offsets */
    return add_missing(p, TAKE_FD(fd), f->path, st->st_dev, &missing, p->extents.extents,
                       p->extents.n);
}

typedef struct Listing {
    PrefetchState *s;
    uint64_t dev;
} Listing;

/* Each entry may be a read of its own, and the disk may be busy. */
static bool may_go_on(void *arg)
{
    const Listing *l = arg;

    l->s->touch(l->s->arg, l->dev);
    return !l->s->is_cancelled(l->s->arg);
}

static int examine_directory(PrefetchState *s, int path_fd, const PrefetchFile *f, uint64_t dev)
{
    _cleanup_close_ int fd = -EBADF;

    if (!refetch_backoff_list_due(&s->backoff, f->path, clock_now(CLOCK_MONOTONIC),
                                  PREFETCH_LIST_USEC))
        return 0;
    fd = fd_reopen_noatime(path_fd, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return fd;
    directory_read_ahead(fd, LOOKUPS_MAX, may_go_on, &(Listing){s, dev});
    s->add_report(s->arg, &(PrefetchReport){.n_directories = 1});
    return 0;
}

/* Opens the block device of the filesystem with that UUID. The filesystem must still be mounted and
 * be an ext2/3/4, whose metadata lies in the device's page cache. Returns a descriptor or a
 * negative errno. */
static int open_block_device(PrefetchState *s, const PrefetchPass *p, const char *uuid,
                             uint64_t *ret_dev)
{
    if (!uuid[0])
        return -ENODEV;
    if (!s->volumes_read) {
        int r = volume_table_read(AT_FDCWD, s->root, &s->volumes);

        if (r < 0)
            return r;
        s->volumes_read = true;
    }
    for (size_t i = 0; i < s->volumes.n; i++) {
        const Volume *v = &s->volumes.volumes[i];

        if (strcmp(v->uuid, uuid) != 0 || !volume_is_ext(v) ||
            !mount_dirs_contain(&p->mounts, v->mount_dev))
            continue;
        *ret_dev = v->block_dev;
        s->touch(s->arg, v->block_dev);
        return block_device_open(v->block_dev);
    }
    return -ENODEV;
}

static int examine_metadata(PrefetchState *s, PrefetchPass *p, const PrefetchFile *f)
{
    _cleanup_range_set_ RangeSet within = {0}, missing = {0};
    _cleanup_close_ int fd = -EBADF;
    uint64_t dev = 0;
    off_t size;
    int r;

    fd = open_block_device(s, p, f->path, &dev);
    if (fd < 0)
        return fd;
    size = lseek(fd, 0, SEEK_END);
    r = clip(&f->ranges, size > 0 ? (uint64_t)size : 0, &within);
    for (size_t i = 0; r >= 0 && i < within.n; i++)
        if (!is_resident(s, fd, within.ranges[i]))
            r = range_set_insert(&missing, within.ranges[i].offset, within.ranges[i].length);
    if (r >= 0)
        r = refetch_backoff_filter(s->backoff, f->path, clock_now(CLOCK_MONOTONIC), &missing);
    if (r < 0 || missing.n == 0)
        return r;
    /* The device counts as one extent. */
    return add_missing(p, TAKE_FD(fd), f->path, dev, &missing, &(Extent){.length = (uint64_t)size},
                       1);
}

static int examine(PrefetchState *s, PrefetchPass *p, const PrefetchFile *f)
{
    _cleanup_close_ int fd = -EBADF;
    struct stat st;
    uint64_t dev;

    if (f->kind == PREFETCH_METADATA)
        return examine_metadata(s, p, f);
    dev = mount_dirs_dev(&p->mounts, f->path);
    s->touch(s->arg, dev);
    fd = mount_dirs_open_path(&p->mounts, f->path, &st);
    if (fd < 0)
        return fd;
    if ((f->kind == PREFETCH_DIRECTORY) != !!S_ISDIR(st.st_mode))
        return -EINVAL;
    if (!ownership_allows(st.st_uid, st.st_gid, st.st_mode, s->uid)) {
        s->refuse(s->arg, f);
        return 0;
    }
    return S_ISDIR(st.st_mode) ? examine_directory(s, fd, f, dev) : examine_file(s, p, fd, &st, f);
}

bool prefetch_pass_run(PrefetchState *s, const PrefetchFile *files, size_t n, size_t *at)
{
    size_t begin = *at, end = begin + MIN(n - begin, (size_t)PREFETCH_PASS_FILES), i = begin;
    PrefetchPass p = {0};
    uint64_t n_skipped = 0;

    if (mount_dirs_read(s->root, s->hung, s->n_hung, &p.mounts) >= 0)
        for (; i < end && p.missing_bytes < PREFETCH_PASS_BYTES && !p.stopped &&
               !s->is_cancelled(s->arg);
             i++) {
            n_skipped += examine(s, &p, &files[i]) < 0;
            s->touch(s->arg, 0);
            if (p.n_files == OPEN_FILES_MAX)
                read_missing(s, &p);
        }
    read_missing(s, &p);
    mount_dirs_done(&p.mounts);
    extent_list_done(&p.extents);
    placed_range_list_done(&p.missing);
    s->add_report(s->arg, &(PrefetchReport){.n_passes = 1,
                                            .n_files = i - begin,
                                            .n_skipped = n_skipped,
                                            .pass_files = i - begin,
                                            .pass_missing_bytes = p.missing_bytes});
    *at = i;
    return i > begin && i < n && !p.stopped && !s->is_cancelled(s->arg);
}

void prefetch_state_done(PrefetchState *s)
{
    s->backoff = refetch_backoff_free(s->backoff);
    prefetch_pace_done(&s->pace);
    volume_table_done(&s->volumes);
}
