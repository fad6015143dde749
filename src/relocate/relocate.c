/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "relocate/relocate.h"

#include "base/directory.h"
#include "base/hash.h"
#include "base/open.h"
#include "execute/opening.h"
#include "plan/cost-model.h"
#include "relocate/move-extents.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define CHECKSUM_BYTES (UINT64_C(1024) * 1024)

/* Attributes with which a file is left alone. */
#define ATTRIBUTES \
    (FS_IMMUTABLE_FL | FS_APPEND_FL | FS_JOURNAL_DATA_FL | FS_ENCRYPT_FL | FS_VERITY_FL | FS_DAX_FL)

static const char *const skips[_RELOCATE_SKIP_MAX] = {
        [RELOCATE_SKIP_CHANGED] = "changed",        [RELOCATE_SKIP_RUNNING] = "running",
        [RELOCATE_SKIP_WRITING] = "written",        [RELOCATE_SKIP_ATTRIBUTES] = "attributes",
        [RELOCATE_SKIP_UNPLACED] = "without place", [RELOCATE_SKIP_REFUSED] = "refused",
};

const char *relocate_skip_to_string(RelocateSkip s)
{
    return s >= 0 && s < _RELOCATE_SKIP_MAX ? skips[s] : NULL;
}

struct RelocateNumber {
    UT_hash_handle hh;
    uint64_t inode; /* little-endian */
    uint32_t file;  /* into Relocate.files */
    bool oom;
};

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(elt) ((elt)->oom = true)

void relocate_done(Relocate *x)
{
    RelocateNumber *number, *next;

    HASH_ITER (hh, x->numbers, number, next) {
        HASH_DEL(x->numbers, number);
        free(number);
    }
    for (size_t i = 0; i < x->n_files; i++)
        free(x->files[i].path);
    free(x->files);
    free(x->needed);
    free(x->parts);
    closep(&x->root_fd);
}

/* --- what the packs read ---------------------------------------------------------------------- */

typedef struct Use {
    uint32_t data, need;
} Use;

static int compare_uses(const void *a, const void *b)
{
    const Use *x = a, *y = b;

    if (x->need != y->need)
        return x->need < y->need ? -1 : 1;
    return x->data < y->data ? -1 : x->data > y->data;
}

/* Notes which file has the inode. Returns 0 or -ENOMEM. */
static int add_number(Relocate *x, le64_t inode, uint32_t file)
{
    RelocateNumber *number = calloc(1, sizeof(*number));

    if (!number)
        return -ENOMEM;
    number->inode = inode;
    number->file = file;
    HASH_ADD(hh, x->numbers, inode, sizeof(number->inode), number);
    if (!number->oom)
        return 0;
    free(number);
    return -ENOMEM;
}

/* Returns the number of the pack's file in x->files. Adds the file if it is not there yet. */
static int find_file(Relocate *x, const Pack *p, const PackFile *f, uint32_t *ret)
{
    const uint64_t inode = f->inode;
    RelocateNumber *number;

    HASH_FIND(hh, x->numbers, &inode, sizeof(inode), number);
    if (number) {
        *ret = number->file;
        return 0;
    }
    CHECK(grow_array(&x->files, &x->allocated_files, x->n_files + 1, sizeof(*x->files)));
    CHECK(add_number(x, f->inode, (uint32_t)x->n_files));
    x->files[x->n_files] = (RelocateFile){
            .path = strdup(pack_string(p, f->path)),
            .planned = *f,
            .skip = _RELOCATE_SKIP_INVALID,
    };
    if (!x->files[x->n_files].path)
        return -ENOMEM;
    *ret = (uint32_t)x->n_files++;
    return 0;
}

int relocate_add_pack(Relocate *x, const Pack *p, uint32_t volume)
{
    const PackVolume *v = &p->volumes[volume];
    uint32_t n = le32toh(v->n_data), known = UINT32_MAX, number = 0;
    _cleanup_free_ Use *uses = calloc((size_t)n + 1, sizeof(*uses));
    int r;

    if (!uses)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t data = le32toh(v->first_data) + i;

        uses[i] = (Use){data, le32toh(p->data[data].need_msec)};
    }
    if (n > 0)
        qsort(uses, n, sizeof(*uses), compare_uses);
    r = grow_array(&x->needed, &x->allocated_needed, x->n_needed + n, sizeof(*x->needed));
    for (uint32_t i = 0; r >= 0 && i < n; i++) {
        const PackData *d = &p->data[uses[i].data];
        uint32_t file = le32toh(d->file);

        if (file != known)
            r = find_file(x, p, &p->files[file], &number);
        known = file;
        if (r >= 0)
            x->needed[x->n_needed++] =
                    (RelocationPart){number, le64toh(d->offset), le64toh(d->length)};
    }
    return r;
}

/* --- which files are moved -------------------------------------------------------------------- */

typedef struct Running {
    uint64_t *inodes; /* of the programs on the filesystem that processes execute */
    size_t n, allocated;
} Running;

static int read_running(const Relocate *x, Running *ret)
{
    _cleanup_closedir_ DIR *d = NULL;
    const struct dirent *e;
    struct stat root;
    int r = directory_open(AT_FDCWD, "/proc", 0, &d);

    if (r >= 0 && fstat(x->root_fd, &root) < 0)
        r = -errno;
    while (r >= 0 && (e = directory_next(d))) {
        char path[NAME_MAX + 16];
        struct statx st;

        /* The program may lie on a filesystem that does not answer. */
        snprintf(path, sizeof(path), "/proc/%s/exe", e->d_name);
        if (e->d_name[0] < '0' || e->d_name[0] > '9' ||
            statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO, &st) < 0 ||
            makedev(st.stx_dev_major, st.stx_dev_minor) != root.st_dev)
            continue;
        r = grow_array(&ret->inodes, &ret->allocated, ret->n + 1, sizeof(*ret->inodes));
        if (r >= 0)
            ret->inodes[ret->n++] = st.stx_ino;
    }
    return r;
}

/* Returns true if a process has the file open for writing: the kernel then grants no read lease.
 * The caller ignores SIGIO, which the kernel sends if somebody opens the file for writing
 * meanwhile. */
static bool is_written(int fd)
{
    if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
        return errno == EAGAIN;
    (void)fcntl(fd, F_SETLEASE, F_UNLCK);
    return false;
}

/* The donor has blocks for holes, too, and a sparse file may be larger than the disk. */
static bool has_holes(const RelocateFile *f, const ExtentList *extents)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < extents->n; i++)
        bytes += extents->extents[i].length;
    return bytes < le64toh(f->planned.size);
}

/* Opens the file for reading. Returns the descriptor, or -1 and the reason in *ret. Allocates
 * *extents. */
static int open_movable(const Relocate *x, const RelocateFile *f, const Running *running,
                        ExtentList *extents, RelocateSkip *ret)
{
    ReplaySkip why;
    _cleanup_close_ int fd = open_planned(x->root_fd, f->path, &f->planned, true, &why);
    int flags = 0;

    *ret = RELOCATE_SKIP_CHANGED;
    if (fd < 0)
        return -1;
    *ret = RELOCATE_SKIP_RUNNING;
    for (size_t i = 0; running && i < running->n; i++)
        if (running->inodes[i] == le64toh(f->planned.inode))
            return -1;
    *ret = RELOCATE_SKIP_WRITING;
    if (le16toh(f->planned.flags) & PACK_FILE_VOLATILE || is_written(fd))
        return -1;
    *ret = RELOCATE_SKIP_ATTRIBUTES;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0 || flags & ATTRIBUTES || !(flags & FS_EXTENT_FL))
        return -1;
    *ret = RELOCATE_SKIP_UNPLACED;
    if (extents_read(fd, EXTENTS_PER_FILE_MAX, extents) < 0 || extents->n_skipped > 0 ||
        has_holes(f, extents))
        return -1;
    return TAKE_FD(fd);
}

/* Adds the places of the file's parts to the list. */
static int add_places(const Relocate *x, const RelocateFile *f, const ExtentList *extents,
                      PlacedRangeList *l)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && extents->n > 0 && i < f->n_parts; i++) {
        const RelocationPart *part = &x->parts[f->first_part + i];
        const PlacedRange range = {
                .file = part->file, .offset = part->offset, .length = part->length};

        r = placed_ranges_add(l, &range, 1, extents->extents, extents->n, PLACED_HOLES_DROP);
    }
    return r;
}

/* Assigns the parts to the files. */
static int join_parts(Relocate *x)
{
    _cleanup_free_ uint64_t *sizes = calloc(x->n_files + 1, sizeof(*sizes));
    int r;

    if (!sizes)
        return -ENOMEM;
    for (size_t i = 0; i < x->n_files; i++)
        sizes[i] = le64toh(x->files[i].planned.size);
    free(TAKE_PTR(x->parts));
    r = relocation_join(x->needed, x->n_needed, sizes, x->n_files, x->page_bytes, &x->parts,
                        &x->n_parts);
    for (size_t i = 0; r >= 0 && i < x->n_parts; i++) {
        RelocateFile *f = &x->files[x->parts[i].file];

        if (f->n_parts++ == 0)
            f->first_part = i;
    }
    return r;
}

static int inspect_file(Relocate *x, RelocateFile *f, const Running *running, PlacedRangeList *all)
{
    _cleanup_placed_range_list_ PlacedRangeList own = {0};
    _cleanup_extent_list_ ExtentList extents = {0};
    RelocateSkip why;
    _cleanup_close_ int fd = open_movable(x, f, running, &extents, &why);
    int r;

    if (fd < 0) {
        ReplaySkip ignored;

        f->skip = why;
        fd = open_planned(x->root_fd, f->path, &f->planned, true, &ignored);
        if (fd < 0 || extents_read(fd, EXTENTS_PER_FILE_MAX, &extents) < 0)
            return 0; /* it is not read either, so it costs nothing */
    }
    r = add_places(x, f, &extents, &own);
    if (r >= 0)
        r = relocation_cost(x->profile, x->device_bytes, &own, &f->cost);
    return r < 0 ? r : add_places(x, f, &extents, all);
}

/* Adds the places of all files, or only of the files that are not moved. */
static int add_files(const Relocate *x, bool only_skipped, PlacedRangeList *l)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < x->n_files; i++) {
        const RelocateFile *f = &x->files[i];
        _cleanup_extent_list_ ExtentList extents = {0};
        _cleanup_close_ int fd = -EBADF;
        ReplaySkip why;

        if (only_skipped && f->skip == _RELOCATE_SKIP_INVALID)
            continue;
        fd = open_planned(x->root_fd, f->path, &f->planned, true, &why);
        if (fd >= 0 && extents_read(fd, EXTENTS_PER_FILE_MAX, &extents) >= 0)
            r = add_places(x, f, &extents, l);
    }
    return r;
}

/* Computes x->after as if the files that are moved lay in one run at `place`. */
static int estimate(Relocate *x, uint64_t place)
{
    _cleanup_placed_range_list_ PlacedRangeList l = {0};
    const PlacedRange run = {.length = x->bytes};
    const Extent extent = {.physical = place, .length = x->bytes};
    int r = 0;

    if (x->bytes > 0)
        r = placed_ranges_add(&l, &run, 1, &extent, 1, PLACED_HOLES_DROP);
    if (r >= 0)
        r = add_files(x, true, &l);
    return r < 0 ? r : relocation_cost(x->profile, x->device_bytes, &l, &x->after);
}

int relocate_inspect(Relocate *x, relocate_progress_t progress, void *arg)
{
    _cleanup_placed_range_list_ PlacedRangeList all = {0};
    Running running = {0};
    int r = join_parts(x);

    if (r >= 0)
        r = read_running(x, &running);
    for (size_t i = 0; r >= 0 && i < x->n_files; i++) {
        progress(arg, i, x->n_files);
        r = inspect_file(x, &x->files[i], &running, &all);
        for (size_t k = 0; x->files[i].skip == _RELOCATE_SKIP_INVALID && k < x->files[i].n_parts;
             k++)
            x->bytes += x->parts[x->files[i].first_part + k].length;
    }
    free(running.inodes);
    if (r >= 0)
        r = relocation_cost(x->profile, x->device_bytes, &all, &x->before);
    return r < 0 ? r : estimate(x, all.n > 0 ? all.ranges[0].physical : 0);
}

/* --- moving ----------------------------------------------------------------------------------- */

/* Computes a checksum of the file's parts. Returns 0 or a negative errno. */
static int checksum(const Relocate *x, const RelocateFile *f, int fd, uint64_t *ret)
{
    _cleanup_free_ char *buf = aligned_alloc(4096, CHECKSUM_BYTES); /* for direct I/O */
    uint64_t sum = 0;

    if (!buf)
        return -ENOMEM;
    for (size_t i = 0; i < f->n_parts; i++) {
        const RelocationPart *part = &x->parts[f->first_part + i];
        uint64_t at = part->offset, end = at + part->length;

        while (at < end) {
            ssize_t n = pread(fd, buf, MIN(end - at, CHECKSUM_BYTES), (off_t)at);

            if (n < 0 && errno == EINTR)
                continue;
            if (n < 0)
                return -errno;
            if (n == 0)
                break;
            sum = hash64(buf, (size_t)n, sum);
            at += (uint64_t)n;
        }
    }
    *ret = sum;
    return 0;
}

static bool stops_all(int error)
{
    return error == -EIO || error == -EUCLEAN || error == -EROFS || error == -ENOSPC ||
           error == -ENOMEM;
}

/* Moves one file to the donor's blocks at *at and advances *at. The file is open for writing only
 * while it is moved, because a program that is open for writing cannot be executed. Returns 0, or
 * an error after which no file can be moved. */
static int move_file(Relocate *x, RelocateFile *f, int donor_fd, uint64_t *at)
{
    _cleanup_extent_list_ ExtentList extents = {0};
    _cleanup_close_ int fd = open_movable(x, f, NULL, &extents, &f->skip);
    _cleanup_close_ int write_fd = -EBADF;
    int r;

    if (fd < 0)
        return 0;
    r = checksum(x, f, fd, &f->checksum);
    if (r >= 0)
        r = write_fd = fd_reopen(fd, O_RDWR);
    f->skip = r == -ETXTBSY ? RELOCATE_SKIP_RUNNING : RELOCATE_SKIP_REFUSED;
    if (r < 0)
        return stops_all(r) ? r : 0;
    for (size_t i = 0; r >= 0 && i < f->n_parts; i++) {
        const RelocationPart *part = &x->parts[f->first_part + i];

        f->moved = true; /* a part of it may have moved, also if the call fails */
        r = move_extents(write_fd, donor_fd, part->offset, *at, part->length);
        *at += part->length;
        x->moved_bytes += r >= 0 ? part->length : 0;
    }
    if (r >= 0)
        f->skip = _RELOCATE_SKIP_INVALID;
    return r < 0 && stops_all(r) ? r : 0;
}

/* Reads the moved parts from the device, past the page cache where that is possible, and compares
 * them. A file that was changed after the move is not compared. */
static int verify_file(const Relocate *x, RelocateFile *f)
{
    ReplaySkip why;
    _cleanup_close_ int fd = open_planned(x->root_fd, f->path, &f->planned, true, &why);
    _cleanup_close_ int direct = -EBADF;
    uint64_t sum;
    int r;

    if (fd < 0)
        return 0;
    direct = fd_reopen(fd, O_RDONLY | O_DIRECT);
    r = direct < 0 ? direct : checksum(x, f, direct, &sum);
    if (r < 0)
        r = checksum(x, f, fd, &sum);
    if (r < 0)
        return r;
    /* A file that was changed while it was read has another change time now. */
    closep(&fd);
    fd = open_planned(x->root_fd, f->path, &f->planned, true, &why);
    f->differs = fd >= 0 && sum != f->checksum;
    return f->differs ? -EBADMSG : 0;
}

static int verify(Relocate *x)
{
    int r = syncfs(x->root_fd) < 0 ? -errno : 0;

    for (size_t i = 0; i < x->n_files; i++) {
        int q = x->files[i].moved ? verify_file(x, &x->files[i]) : 0;

        r = r < 0 ? r : q;
    }
    return r;
}

static int measure_again(Relocate *x)
{
    _cleanup_placed_range_list_ PlacedRangeList l = {0};
    int r = add_files(x, false, &l);

    return r < 0 ? r : relocation_cost(x->profile, x->device_bytes, &l, &x->after);
}

int relocate_run(Relocate *x, relocate_progress_t progress, void *arg)
{
    _cleanup_extent_list_ ExtentList extents = {0};
    _cleanup_close_ int donor_fd = -EBADF;
    uint64_t at = 0;
    int r, q;

    if (x->bytes == 0)
        return 0;
    r = donor_make(x->root_fd, x->bytes, &donor_fd, &extents);
    if (r < 0)
        return r;
    /* Parts lie in the order of the files' first use. */
    for (size_t i = 0; r >= 0 && i < x->n_parts; i++) {
        RelocateFile *f = &x->files[x->parts[i].file];

        progress(arg, at, x->bytes);
        if (i == f->first_part && f->skip == _RELOCATE_SKIP_INVALID)
            r = move_file(x, f, donor_fd, &at);
    }
    q = verify(x);
    if (q >= 0)
        q = measure_again(x);
    return r < 0 ? r : q;
}
