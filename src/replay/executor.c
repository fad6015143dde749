/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "replay/executor.h"

#include "base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static const char *const skip_names[_REPLAY_SKIP_MAX] = {
        [REPLAY_SKIP_UNMOUNTED] = "unmounted", [REPLAY_SKIP_DEVICE] = "device",
        [REPLAY_SKIP_GONE] = "gone",           [REPLAY_SKIP_TYPE] = "type",
        [REPLAY_SKIP_REPLACED] = "replaced",   [REPLAY_SKIP_DENIED] = "denied",
        [REPLAY_SKIP_ERROR] = "error",         [REPLAY_SKIP_STOPPED] = "stopped",
};

const char *replay_skip_to_string(ReplaySkip s)
{
    return (int)s >= 0 && s < _REPLAY_SKIP_MAX ? skip_names[s] : NULL;
}

/* What became of a file of the pack. */
enum { FILE_UNTRIED = -1, FILE_SKIPPED = -2, FILE_CLOSED = -3 }; /* else its descriptor */

typedef struct Executor {
    const Pack *pack;
    const OperationList *list;
    const MountedSegment *mounted;
    const ReplayOptions *options;
    atomic_int *files;      /* per file of the pack */
    atomic_int n_open;
    int max_open;           /* descriptors that may stay open: what is over is opened again */
    atomic_size_t next;     /* operation that the next free worker takes */
    size_t end;
    atomic_uint_fast64_t n_done[_OPERATION_KIND_MAX], bytes[_OPERATION_KIND_MAX];
    atomic_uint_fast64_t n_skipped[_REPLAY_SKIP_MAX];
    atomic_bool failed_wait;
} Executor;

static bool must_stop(const Executor *x)
{
    return x->options->stop && atomic_load_explicit(x->options->stop, memory_order_relaxed);
}

static void skip(Executor *x, ReplaySkip why)
{
    atomic_fetch_add(&x->n_skipped[why], 1);
}

static ReplaySkip skip_of_errno(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ESTALE:
        return REPLAY_SKIP_GONE;
    case ELOOP:
    case EXDEV: /* a mount point, or an automount, by now */
        return REPLAY_SKIP_TYPE;
    case EACCES:
    case EPERM:
        return REPLAY_SKIP_DENIED;
    default:
        return REPLAY_SKIP_ERROR;
    }
}

static bool is_planned(const PackFile *f, const struct stat *st)
{
    int64_t mtime = (int64_t)st->st_mtim.tv_sec * (int64_t)NSEC_PER_SEC + st->st_mtim.tv_nsec;
    int64_t ctime = (int64_t)st->st_ctim.tv_sec * (int64_t)NSEC_PER_SEC + st->st_ctim.tv_nsec;

    if (st->st_ino != le64toh(f->inode))
        return false;
    /* A directory's size and times change with every entry; it is the same directory. */
    if (le16toh(f->flags) & PACK_FILE_DIRECTORY)
        return true;
    return (uint64_t)st->st_size == le64toh(f->size) &&
           mtime == (int64_t)le64toh(f->mtime_nsec) && ctime == (int64_t)le64toh(f->ctime_nsec);
}

/* Opens the file below its mount point, without effect on whatever the path may have become: first
 * as a mere place (no FIFO waits, no device wakes, no automount triggers), then, if it is the file
 * that was planned, for reading. A descriptor, or a negative errno and *why. */
static int open_file(const Executor *x, uint32_t segment, const PackFile *f, ReplaySkip *why)
{
    struct open_how how = {
            .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
                       RESOLVE_NO_XDEV,
    };
    bool directory = le16toh(f->flags) & PACK_FILE_DIRECTORY;
    _cleanup_close_ int path_fd = -EBADF;
    char proc[64];
    struct stat st;
    int fd;

    path_fd = (int)syscall(SYS_openat2, x->mounted[segment].root_fd, pack_string(x->pack, f->path),
                           &how, sizeof(how));
    if (path_fd < 0 || fstat(path_fd, &st) < 0) {
        *why = skip_of_errno(errno);
        return -errno;
    }
    if (directory ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode)) {
        *why = REPLAY_SKIP_TYPE;
        return -EINVAL;
    }
    if (!is_planned(f, &st)) {
        *why = REPLAY_SKIP_REPLACED;
        return -ESTALE;
    }
    snprintf(proc, sizeof(proc), "/proc/self/fd/%d", path_fd);
    fd = open(proc, O_RDONLY | O_NOATIME | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno == EPERM)
        fd = open(proc, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        *why = skip_of_errno(errno);
        return -errno;
    }
    return fd;
}

/* Lists the directory, where that is what brings its metadata in. */
static void touch_entries(int fd)
{
    char buf[32768];

    while (syscall(SYS_getdents64, fd, buf, sizeof(buf)) > 0)
        ;
}

static void do_open(Executor *x, const Operation *op)
{
    const PackSegment *g = &x->pack->segments[op->segment];
    const PackFile *f = &x->pack->files[op->index];
    bool directory = le16toh(f->flags) & PACK_FILE_DIRECTORY;
    ReplaySkip why;
    int fd;

    if (x->mounted[op->segment].root_fd < 0) {
        skip(x, REPLAY_SKIP_UNMOUNTED);
        x->files[op->index] = FILE_SKIPPED;
        return;
    }
    fd = open_file(x, op->segment, f, &why);
    if (fd < 0) {
        skip(x, why);
        x->files[op->index] = FILE_SKIPPED;
        return;
    }
    x->n_done[OPERATION_OPEN]++;
    if (directory && (le32toh(g->flags) & PACK_SEGMENT_TOUCH_ENTRIES))
        touch_entries(fd);
    if (!directory && atomic_fetch_add(&x->n_open, 1) < x->max_open)
        x->files[op->index] = fd;
    else {
        x->files[op->index] = FILE_CLOSED;
        close(fd);
    }
}

/* The descriptor behind a data or metadata operation, and its range. -EBADF: none, skip it silently
 * (its file was counted when it was opened). *opened says that the caller closes it. */
static int target_of(Executor *x, const Operation *op, uint64_t *offset, uint64_t *length,
                     bool *opened)
{
    ReplaySkip why;
    int fd;

    *opened = false;
    if (op->kind == OPERATION_METADATA) {
        const PackMetadata *m = &x->pack->metadata[op->index];

        *offset = le64toh(m->offset);
        *length = le64toh(m->length);
        return x->mounted[op->segment].device_fd;
    }
    const PackData *d = &x->pack->data[op->index];

    *offset = le64toh(d->offset);
    *length = le64toh(d->length);
    fd = x->files[le32toh(d->file)];
    if (fd != FILE_CLOSED)
        return fd >= 0 ? fd : -EBADF;
    fd = open_file(x, op->segment, &x->pack->files[le32toh(d->file)], &why);
    *opened = fd >= 0;
    return fd;
}

/* Asks for the range. readahead(2) cuts what it is given at the end of the file by itself. */
static void submit(Executor *x, const Operation *op)
{
    uint64_t offset, length;
    bool opened;
    int fd = target_of(x, op, &offset, &length, &opened);

    if (fd < 0) {
        if (op->kind == OPERATION_METADATA)
            skip(x, x->mounted[op->segment].root_fd < 0 ? REPLAY_SKIP_UNMOUNTED
                                                        : REPLAY_SKIP_DEVICE);
        return;
    }
    if (readahead(fd, (off_t)offset, length) < 0)
        skip(x, REPLAY_SKIP_ERROR);
    else {
        x->n_done[op->kind]++;
        x->bytes[op->kind] += length;
    }
    if (opened)
        close(fd);
}

/* Returns when every page of the range is there: a read of one byte waits for a page on its way and
 * brings in one that got lost. readahead(2) and posix_fadvise(2) return long before. */
static void await(Executor *x, const Operation *op)
{
    uint64_t offset, length;
    bool opened;
    char byte;
    int fd;

    if (op->kind == OPERATION_OPEN) /* done when it returned; it has no range */
        return;
    fd = target_of(x, op, &offset, &length, &opened);
    if (fd < 0)
        return;
    for (uint64_t at = offset; at < offset + length && !must_stop(x); at += PACK_PAGE_SIZE) {
        ssize_t n = pread(fd, &byte, 1, (off_t)at);

        if (n < 0)
            x->failed_wait = true;
        if (n <= 0)
            break; /* the end of the file */
    }
    if (opened)
        close(fd);
}

static uint64_t length_of(const Executor *x, const Operation *op)
{
    return op->kind == OPERATION_METADATA ? le64toh(x->pack->metadata[op->index].length)
           : op->kind == OPERATION_DATA   ? le64toh(x->pack->data[op->index].length)
                                          : 0;
}

/* One stream: asks in order, and lets at most a window be under way. */
static void run_ordered(Executor *x, size_t begin, size_t end)
{
    const Operation *ops = x->list->operations;
    uint64_t in_flight = 0;
    size_t behind = begin, i;

    for (i = begin; i < end && !must_stop(x); i++) {
        if (ops[i].kind == OPERATION_OPEN)
            do_open(x, &ops[i]);
        else
            submit(x, &ops[i]);
        in_flight += length_of(x, &ops[i]);
        for (; in_flight > x->options->window_bytes && behind < i; behind++) {
            await(x, &ops[behind]);
            in_flight -= length_of(x, &ops[behind]);
        }
    }
    for (size_t k = i; k < end; k++)
        skip(x, REPLAY_SKIP_STOPPED);
    for (; x->options->wait && behind < i && !must_stop(x); behind++)
        await(x, &ops[behind]);
}

/* One of several streams: each has one operation under way. */
static void *run_worker(void *arg)
{
    Executor *x = arg;
    size_t i;

    while ((i = atomic_fetch_add(&x->next, 1)) < x->end) {
        const Operation *op = &x->list->operations[i];

        if (must_stop(x))
            skip(x, REPLAY_SKIP_STOPPED);
        else if (op->kind == OPERATION_OPEN)
            do_open(x, op);
        else {
            submit(x, op);
            await(x, op);
        }
    }
    return NULL;
}

static void run_parallel(Executor *x, size_t begin, size_t end, unsigned n)
{
    pthread_t threads[64];
    unsigned started = 0;

    x->next = begin;
    x->end = end;
    for (; started + 1 < MIN(n, (unsigned)ELEMENTSOF(threads)) && started + 1 < end - begin;
         started++)
        if (pthread_create(&threads[started], NULL, run_worker, x) != 0)
            break; /* fewer, then */
    run_worker(x);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

/* Makes room for descriptors; what does not fit is opened again when its turn comes. */
static int descriptor_limit(void)
{
    struct rlimit l;

    if (getrlimit(RLIMIT_NOFILE, &l) < 0)
        return 128;
    l.rlim_cur = l.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &l) < 0 && getrlimit(RLIMIT_NOFILE, &l) < 0)
        return 128;
    return (int)MIN(l.rlim_cur, (rlim_t)1 << 20) - 128;
}

int replay_execute(const Pack *p, const OperationList *l, const MountedSegment *mounted,
                   const ReplayOptions *o, ReplayResult *ret)
{
    uint32_t n_files = le32toh(p->header->n_files);
    usec_t start = clock_now(CLOCK_MONOTONIC);
    Executor x = {.pack = p, .list = l, .mounted = mounted, .options = o};
    size_t begin = 0;

    x.max_open = descriptor_limit();
    x.files = calloc((size_t)n_files + 1, sizeof(atomic_int));
    if (!x.files)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_files; i++)
        x.files[i] = FILE_UNTRIED;

    /* Segment by segment, and within one kind by kind, as the list has them: opens need metadata,
     * data needs opens. */
    while (begin < l->n) {
        const Operation *first = &l->operations[begin];
        const PackSegment *g = &p->segments[first->segment];
        bool ordered = segment_is_ordered(g);
        size_t end = begin;

        while (end < l->n && l->operations[end].segment == first->segment &&
               (ordered || l->operations[end].kind == first->kind))
            end++;
        if (ordered)
            run_ordered(&x, begin, end);
        else
            run_parallel(&x, begin, end, segment_parallelism(g));
        begin = end;
    }

    for (uint32_t i = 0; i < n_files; i++)
        if (x.files[i] >= 0)
            close(x.files[i]);
    free(x.files);
    *ret = (ReplayResult){
            .n_metadata = x.n_done[OPERATION_METADATA],
            .n_opened = x.n_done[OPERATION_OPEN],
            .n_data = x.n_done[OPERATION_DATA],
            .metadata_bytes = x.bytes[OPERATION_METADATA],
            .data_bytes = x.bytes[OPERATION_DATA],
            .duration_usec = clock_now(CLOCK_MONOTONIC) - start,
            .waited = o->wait && !x.failed_wait && !must_stop(&x),
    };
    for (int i = 0; i < _REPLAY_SKIP_MAX; i++)
        ret->n_skipped[i] = x.n_skipped[i];
    return 0;
}
