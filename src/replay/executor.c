/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The executor: a leader thread finds the filesystems and builds the list of operations; then it
 * and further workers carry out the streams. A worker asks the kernel to read a chunk, stores the
 * chunk in the worker's ring, and continues with the next one as long as its pacer allows. To make
 * room it waits for the oldest chunk by reading from it, because POSIX_FADV_WILLNEED does not say
 * when data has arrived.
 *
 * Threads: the caller of replay_start() (it never waits for the disk), the leader, the workers. The
 * leader is worker 0.
 *
 * Lock map. There is one mutex, Replay.lock. It is held for short updates, never over I/O.
 *
 *   fields of Replay            written by                     read by
 *   pack, options, starter      replay_start(), before the     everyone, without the lock
 *                               leader exists
 *   mounted, list, files,       the leader, before `listed`    workers; callers once `listed` is
 *   queues, keep_open           is set                         set (mounted: once `done` is)
 *   list.operations from        reorder(), with lock           next_operations(), with lock
 *   queues[].next on
 *   queues[].next, .busy_opens  workers, with lock             workers and callers, with lock
 *   queues[].leg                the leader, with lock, while   workers, with lock
 *                               no worker runs
 *   files[] except .end, n_open workers, with lock             workers, with lock
 *   listed, hurried, order,     leader or caller, with lock    everyone, with lock
 *   stopped, done, error,
 *   result
 *   recheck_until, leg, drains  the leader, with lock, while   workers, without the lock: their
 *                               no worker runs                 threads start after the change
 *   needs[]                     workers, each its own data;    the leader, while no worker runs
 *                               no lock
 *   io_class, beside (atomic)   any caller                     workers, before each operation
 *
 *   The condition `opened` is signalled when queues[].busy_opens becomes 0; data waits for it. A
 *   Worker, its ring and its scratch buffer belong to one thread.
 *
 * The executor is one file, because its lock map must be checked against all of its functions. */

#include "replay/executor.h"

#include "base/cachestat.h"
#include "base/clock.h"
#include "base/directory.h"
#include "replay/joined-read.h"
#include "replay/marker.h"
#include "replay/opening.h"
#include "replay/pacer.h"
#include "replay/sample.h"
#include "replay/subtract.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>

#define STACK_BYTES     (256U * 1024)
#define SCRATCH_BYTES   (128U * 1024)
#define DESCRIPTORS_OWN 24U /* open besides the files of the pack */

/* The most requests in flight in a sweep next to an application that starts: a disk has a queue of
 * this length. */
#define REQUESTS_BESIDE 32U

/* State of a file of the pack. */
typedef enum FileState {
    FILE_UNTRIED,
    FILE_SKIPPED, /* it could not be opened, and was counted */
    FILE_FOUND,   /* it is the planned file; it is opened again if fd was closed */
} FileState;

typedef struct File {
    int fd; /* < 0: not open */
    FileState state;
    uint32_t in_flight; /* chunks in flight: the descriptor is in use */
    uint32_t left;      /* data operations that were not begun */
    bool reading;       /* a worker has taken a data operation, which opens the file */
    uint64_t end;       /* of its last range */
    uint64_t bytes;     /* of its ranges */
    bool examined;      /* `resident` is known */
    uint64_t resident;  /* with `skip_resident`: bytes in memory before the replay */
} File;

typedef struct StreamQueue {
    const Stream *stream;
    size_t next, end;    /* operations that were not begun */
    size_t leg;          /* those before this one may begin: the end of the leg */
    size_t surveyed;     /* the first operation of the leg */
    unsigned busy_opens; /* opens under way; data waits until there are none */
} StreamQueue;

/* What a survey finds out about a range of data. */
typedef enum Need {
    NEED_WHOLE, /* nothing of the range is in memory */
    NEED_PARTS, /* a part of it is in memory, or its file may have grown */
    NEED_NONE,  /* it is in memory or probably not needed, or its file cannot be opened */
} Need;

/* A part of a replay next to an application; run_legs(). */
typedef enum Leg {
    LEG_NONE, /* the replay has no legs */
    LEG_EXECUTABLE,
    LEG_METADATA,
    LEG_SURVEY,
    LEG_DATA,
    LEG_OPENS,
} Leg;

struct Replay {
    const Pack *pack;
    ReplayOptions options;
    pthread_t starter, leader;

    MountedTable mounted;
    OperationList list;

    pthread_mutex_t lock; /* see the lock map */
    pthread_cond_t opened;
    File *files;         /* one per file of the pack */
    StreamQueue *queues; /* one per stream */
    bool listed;         /* the list and the queues can be used */
    bool stopped;        /* replay_stop() was called */
    bool hurried;        /* replay_hurry() was called: `order` counts */
    ReplayOrder order;
    usec_t recheck_until; /* end of the recheck, which reads reclaimed pages again; 0: the sweep is
                             not over */
    Leg leg;              /* how the workers carry out their operations */
    bool drains;          /* the workers wait for what is in flight: another leg follows */
    Need *needs;          /* data -> what the survey has found; NULL: no survey */
    bool done;
    int error;
    uint32_t n_open, keep_open;
    ReplayResult result;

    atomic_int io_class;
    atomic_bool beside; /* others read from the disk: the stage runs next to the replay */
};

#define CHUNK_OF_DEVICE UINT32_MAX

/* A part of an operation, in flight. */
typedef struct Chunk {
    int fd;
    uint32_t file; /* CHUNK_OF_DEVICE, or index of the file in the pack */
    uint32_t length;
    uint64_t offset;
    uint64_t bytes; /* of the request; more than `length` if it also reads parts of other files */
} Chunk;

typedef struct Worker {
    Replay *replay;
    StreamQueue *stream_queue;
    pthread_t thread;
    Pacer pacer;
    Chunk *queue; /* a ring of queue_size chunks */
    uint32_t queue_size;
    uint32_t oldest;       /* its index in the ring */
    uint64_t beside_bytes; /* the window while others read from the disk */
    uint32_t beside_requests;
    size_t run_max; /* the number of operations that one request serves: each opens a file */
    char *scratch;
    uint64_t head; /* where the disk's head is after the operations so far: the highest place of the
                      sweep */
    IoClass io_class;
    bool sweeps; /* the operations are in the order of place, or of need and place */
    bool alone;  /* no other worker takes operations of the stream */
    bool started;
    bool failed; /* a chunk could not be read */
} Worker;

static void lock(Replay *x)
{
    pthread_mutex_lock(&x->lock);
}

static void unlock(Replay *x)
{
    pthread_mutex_unlock(&x->lock);
}

static void follow_io_class(Worker *w)
{
    IoClass c = (IoClass)atomic_load_explicit(&w->replay->io_class, memory_order_relaxed);

    if (c == w->io_class)
        return;
    w->io_class = c;
    thread_set_io_class(c);
}

/* Narrows the window when the stage begins to run next to the replay: a read that is in no pack
 * waits behind the requests in flight. */
static void follow_readers(Worker *w)
{
    if (atomic_load_explicit(&w->replay->beside, memory_order_relaxed))
        pacer_limit(&w->pacer, w->beside_bytes, w->beside_requests);
}

/* --- descriptors ------------------------------------------------------------------------------ */

/* Takes the descriptor out of the file and returns it; the caller closes it. Returns -EBADF if the
 * file has none, if a chunk is in flight, or if the file has data left to read and no more than
 * keep_open files are open. Called with the lock held. */
static int drop_descriptor(Replay *x, File *f)
{
    int fd = f->fd;

    if (fd < 0 || f->in_flight > 0 || (f->left > 0 && x->n_open <= x->keep_open))
        return -EBADF;
    f->fd = -EBADF;
    x->n_open--;
    return fd;
}

static void await_oldest(Worker *w);

static int open_file(Worker *w, uint32_t volume, const PackFile *f, bool reading, ReplaySkip *why)
{
    const Replay *x = w->replay;
    int fd;

    for (;;) {
        fd = open_planned(x->mounted.volumes[volume].root_fd, pack_string(x->pack, f->path), f,
                          reading, why);
        if ((fd != -EMFILE && fd != -ENFILE) || w->pacer.in_flight_requests == 0)
            return fd;
        await_oldest(w);
    }
}

/* Counts the result of the first attempt to open the file. Called with the lock held. */
static void note_opened(Replay *x, File *file, bool found, ReplaySkip why)
{
    if (file->state != FILE_UNTRIED)
        return;
    file->state = found ? FILE_FOUND : FILE_SKIPPED;
    if (found)
        x->result.n_opened++;
    else
        x->result.n_skipped[why]++;
}

static void execute_open(Worker *w, const Operation *op)
{
    Replay *x = w->replay;
    const PackFile *f = &x->pack->files[op->index];
    bool directory = le16toh(f->flags) & PACK_FILE_DIRECTORY;
    bool touch =
            directory && (le32toh(x->pack->volumes[op->volume].flags) & PACK_VOLUME_TOUCH_ENTRIES);
    File *file = &x->files[op->index];
    ReplaySkip why = REPLAY_SKIP_ERROR;
    bool keep, tried;
    int fd = -EBADF;

    lock(x);
    tried = file->reading || file->state != FILE_UNTRIED;
    keep = !tried && file->left > 0 && x->n_open < x->keep_open;
    if (keep)
        x->n_open++;
    unlock(x);
    if (!tried)
        fd = open_file(w, op->volume, f, keep || touch, &why);
    if (fd >= 0 && touch) {
        directory_read_ahead(fd, 0);
        close(fd);
    }
    lock(x);
    if (!tried)
        note_opened(x, file, fd >= 0, why);
    if (keep && fd >= 0 && file->fd < 0)
        file->fd = TAKE_FD(fd);
    else if (keep)
        x->n_open--;
    if (--w->stream_queue->busy_opens == 0)
        pthread_cond_broadcast(&x->opened);
    unlock(x);
    if (keep && fd >= 0)
        close(fd); /* another worker has opened the file meanwhile */
}

/* Returns a descriptor for reading the file's data, or a negative errno. Opens the file if that was
 * not tried yet. Each call that succeeds is paired with one call of release_file(). */
static int acquire_file(Worker *w, const Operation *op, uint32_t index)
{
    Replay *x = w->replay;
    File *f = &x->files[index];
    ReplaySkip why = REPLAY_SKIP_ERROR;
    int fd, mine = -EBADF;

    lock(x);
    if (f->state == FILE_SKIPPED) {
        unlock(x);
        return -ENOENT; /* the error was counted when opening the file failed */
    }
    if (f->fd < 0) {
        unlock(x);
        mine = open_file(w, op->volume, &x->pack->files[index], true, &why);
        lock(x);
        if (mine < 0) {
            if (f->state == FILE_FOUND)
                x->result.n_skipped[why]++; /* it was found before, and is not any more */
            note_opened(x, f, false, why);
            unlock(x);
            return mine;
        }
        note_opened(x, f, true, why);
        if (f->fd < 0) {
            f->fd = mine;
            x->n_open++;
            mine = -EBADF;
        }
    }
    f->in_flight++;
    fd = f->fd;
    unlock(x);
    if (mine >= 0)
        close(mine); /* another worker has opened the file meanwhile */
    return fd;
}

static void release_file(Replay *x, uint32_t index)
{
    int fd;

    lock(x);
    x->files[index].in_flight--;
    fd = drop_descriptor(x, &x->files[index]);
    unlock(x);
    if (fd >= 0)
        close(fd);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Waits for the oldest chunk in flight by reading from it. The read returns when its pages are in
 * the page cache. It also reads pages that were reclaimed or that the kernel did not read ahead.
 * Reading the last byte suffices to limit the window. With `wait` the whole chunk is read, so that
 * all of it is resident. */
static void await_oldest(Worker *w)
{
    const Chunk *c = &w->queue[w->oldest];
    const Replay *x = w->replay;
    uint64_t end = c->offset + c->length, at = c->offset;

    if (c->file != CHUNK_OF_DEVICE)
        end = MIN(end, le64toh(x->pack->files[c->file].size));
    if (!x->options.wait && end > at)
        at = end - 1;
    while (at < end) {
        ssize_t n = pread(c->fd, w->scratch, MIN(end - at, (uint64_t)SCRATCH_BYTES), (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            w->failed = true;
        if (n <= 0)
            break;
        at += (uint64_t)n;
    }
    pacer_completed(&w->pacer, c->bytes);
    w->oldest = (w->oldest + 1) % w->queue_size;
    if (c->file != CHUNK_OF_DEVICE)
        release_file(w->replay, c->file);
}

static void make_room(Worker *w, uint64_t bytes)
{
    while (!pacer_may_submit(&w->pacer, bytes))
        await_oldest(w);
}

/* Puts a chunk that was requested into the ring; make_room() comes before the request. */
static void note_submitted(Worker *w, const Chunk *c)
{
    w->queue[(w->oldest + w->pacer.in_flight_requests) % w->queue_size] = *c;
    pacer_submitted(&w->pacer, c->bytes);
}

/* Submits one chunk. On success await_oldest() releases its file later; on failure the caller does.
 * readahead(2) would do, too, but it refused block devices in Linux 4.19 to 6.6. */
static int submit(Worker *w, const Chunk *c)
{
    int r;

    make_room(w, c->bytes);
    r = -posix_fadvise(c->fd, (off_t)c->offset, c->length, POSIX_FADV_WILLNEED);
    if (r < 0)
        return r;
    note_submitted(w, c);
    return 0;
}

/* Returns the end of the data that follows the planned end of a file. Skips short holes, because a
 * journal leaves out single blocks. The search ends shortly after `limit`. */
static uint64_t find_data_end(int fd, uint64_t end, uint64_t limit)
{
    /* lseek(2) changes the file offset. That has no effect, because reads use pread(2). */
    off_t hole = lseek(fd, (off_t)end - 1, SEEK_HOLE);

    while (hole > 0 && (uint64_t)hole >= end && (uint64_t)hole < limit) {
        off_t data = lseek(fd, hole, SEEK_DATA);

        if (data < 0 || (uint64_t)(data - hole) > OPERATION_HOLE_MAX)
            break;
        hole = lseek(fd, data, SEEK_HOLE);
    }
    return hole > 0 ? (uint64_t)hole : 0;
}

/* Returns how many bytes after the file's range that ends at `end` are read as well. Only the last
 * range of a volatile file has such bytes. */
static uint64_t appended_bytes(Worker *w, const Operation *op, uint32_t index, uint64_t end)
{
    const PackFile *f = &w->replay->pack->files[index];
    uint64_t data_end;
    int fd;

    if (!(le16toh(f->flags) & PACK_FILE_VOLATILE) || end == 0 || end != w->replay->files[index].end)
        return 0;
    fd = acquire_file(w, op, index);
    if (fd < 0)
        return 0;
    data_end = find_data_end(fd, end, end + OPERATION_APPENDED_MAX);
    release_file(w->replay, index);
    return operation_appended_bytes(end, data_end);
}

/* Restarts the window if the operation begins a new sweep: it lies before the head of a disk that
 * has one ordered stream. */
static void follow_head(Worker *w, const Operation *op)
{
    const Replay *x = w->replay;
    uint64_t place = operation_place(x->pack, x->mounted.facts, op);

    if (!w->alone || !w->sweeps || place == PACK_PHYSICAL_UNKNOWN || x->leg == LEG_EXECUTABLE)
        return;
    if (place <= w->head)
        pacer_restart(&w->pacer);
    w->head = place;
}

/* Finds out before the first range of the file is read how much of the file is resident. */
static void examine_file(Worker *w, const Operation *op, uint32_t index)
{
    Replay *x = w->replay;
    File *f = &x->files[index];
    int64_t pages;
    bool examined;
    int fd;

    lock(x);
    examined = f->examined;
    f->examined = true;
    unlock(x);
    fd = examined ? -EBADF : acquire_file(w, op, index);
    if (fd < 0)
        return;
    pages = cachestat_count(fd, CACHESTAT_RESIDENT, 0, f->end);
    release_file(x, index);
    lock(x);
    f->resident = pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
    unlock(x);
}

/* Returns true if the application probably does not need the range. */
static bool is_unneeded(Replay *x, uint32_t index, uint64_t length)
{
    const File *f = &x->files[index];
    bool unneeded;

    lock(x);
    unneeded = operation_is_unneeded(&x->pack->files[index], f->resident, f->bytes, length);
    unlock(x);
    return unneeded;
}

/* Returns true if `skip_resident` leaves out the chunk of a range of `length` bytes. */
static bool leaves_out(Replay *x, const Chunk *c, uint64_t length)
{
    return x->options.skip_resident &&
           (cachestat_is_resident(c->fd, c->offset, c->length) > 0 ||
            (c->file != CHUNK_OF_DEVICE && is_unneeded(x, c->file, length)));
}

/* Returns how many resident pages the range of the file has. */
static uint64_t count_resident(int fd, uint64_t offset, uint64_t length)
{
    int64_t n = cachestat_count(fd, CACHESTAT_RESIDENT, offset, length);

    return n > 0 ? (uint64_t)n : 0;
}

/* Opens the file of the data, and finds out how much of the data is in memory. */
static void survey_range(Worker *w, const Operation *op)
{
    Replay *x = w->replay;
    uint32_t index = le32toh(x->pack->data[op->index].file);
    uint64_t offset, length;
    Need need = NEED_NONE;
    int fd;

    operation_range(x->pack, op, &offset, &length);
    examine_file(w, op, index);
    fd = acquire_file(w, op, index);
    if (fd >= 0) {
        if (le16toh(x->pack->files[index].flags) & PACK_FILE_VOLATILE)
            need = NEED_PARTS;
        else if (cachestat_is_resident(fd, offset, length) <= 0 && !is_unneeded(x, index, length))
            need = count_resident(fd, offset, length) > 0 ? NEED_PARTS : NEED_WHOLE;
    }
    x->needs[op->index] = need;
    lock(x);
    if (need == NEED_NONE) {
        x->files[index].left--;
        x->result.n_data += fd >= 0;
        x->result.resident_bytes += fd >= 0 ? length : 0;
    }
    unlock(x);
    if (fd >= 0)
        release_file(x, index);
}

/* Returns the size of the chunks of a range. Next to an application, a larger chunk of metadata of
 * which parts are in memory would become several requests at once, which a disk reads downwards. */
static uint64_t largest_chunk(const Replay *x, const MountedVolume *m)
{
    return x->leg == LEG_METADATA ? (uint64_t)sysconf(_SC_PAGESIZE) : m->chunk_bytes;
}

static void execute_range(Worker *w, const Operation *op)
{
    Replay *x = w->replay;
    const MountedVolume *m = &x->mounted.volumes[op->volume];
    bool metadata = op->kind == OPERATION_METADATA;
    uint32_t index = metadata ? CHUNK_OF_DEVICE : le32toh(x->pack->data[op->index].file);
    uint64_t offset, length, at, resident = 0;
    uint64_t chunk_bytes = largest_chunk(x, m);
    int r = 0;

    follow_head(w, op);
    operation_range(x->pack, op, &offset, &length);
    if (!metadata)
        length += appended_bytes(w, op, index, offset + length);
    if (!metadata && x->options.skip_resident)
        examine_file(w, op, index);
    if (!metadata && !x->recheck_until) {
        lock(x);
        x->files[index].left--;
        unlock(x);
    }
    for (at = 0; at < length && r >= 0;) {
        Chunk c = {
                .fd = m->device_fd,
                .file = index,
                .length = (uint32_t)MIN(length - at, chunk_bytes),
                .offset = offset + at,
        };

        c.bytes = c.length;
        if (!metadata) {
            c.fd = acquire_file(w, op, index);
            if (c.fd < 0)
                return;
        }
        if (x->recheck_until && cachestat_is_resident(c.fd, c.offset, c.length) != 0)
            r = 1;
        else if (leaves_out(x, &c, length)) {
            r = 1;
            resident += c.length;
        } else
            r = submit(w, &c);
        if (r != 0 && !metadata)
            release_file(x, index);
        if (r >= 0)
            at += c.length;
    }
    if (x->recheck_until)
        return;
    lock(x);
    if (r < 0)
        x->result.n_skipped[REPLAY_SKIP_ERROR]++;
    else if (metadata)
        x->result.n_metadata++;
    else
        x->result.n_data++;
    *(metadata ? &x->result.metadata_bytes : &x->result.data_bytes) += at - resident;
    x->result.resident_bytes += resident;
    unlock(x);
}

/* A range of a run that is read as one request. */
typedef struct RunPart {
    const Operation *operation;
    uint32_t file;
} RunPart;

/* Counts the ranges as begun, and as read. */
static void count_run(Replay *x, const RunPart *parts, const JoinedPart *joined, size_t n)
{
    lock(x);
    for (size_t i = 0; i < n; i++) {
        x->files[parts[i].file].left--;
        x->result.n_data++;
        x->result.data_bytes += joined[i].length;
    }
    unlock(x);
}

/* Reads ranges of several files that follow one another on the device as one request. Of its files,
 * only the last one stays in flight, because its data arrive last. If the request fails, or if
 * replay waits for each range (`wait`), the ranges are read one by one. */
static void execute_run(Worker *w, const Operation *operations, size_t n)
{
    Replay *x = w->replay;
    RunPart parts[OPERATION_RUN_MAX];
    JoinedPart joined[OPERATION_RUN_MAX];
    uint64_t bytes = 0;
    size_t m = 0;
    int r = -ENODATA;

    follow_head(w, &operations[0]);
    for (size_t i = 0; i < n; i++) {
        uint32_t file = le32toh(x->pack->data[operations[i].index].file);
        int fd = acquire_file(w, &operations[i], file);

        if (fd < 0)
            continue;
        parts[m] = (RunPart){&operations[i], file};
        joined[m].fd = fd;
        operation_range(x->pack, &operations[i], &joined[m].offset, &joined[m].length);
        bytes += joined[m++].length;
    }
    if (m > 0) {
        make_room(w, bytes);
        r = joined_read(joined, m);
    }
    if (r >= 0) {
        const JoinedPart *last = &joined[m - 1];

        count_run(x, parts, joined, m);
        note_submitted(w, &(Chunk){last->fd, parts[m - 1].file, (uint32_t)last->length,
                                   last->offset, bytes});
    }
    for (size_t i = 0; i < m; i++)
        if (r < 0 || i + 1 < m)
            release_file(x, parts[i].file);
    for (size_t i = 0; r < 0 && i < m; i++)
        execute_range(w, parts[i].operation);
}

/* --- workers ---------------------------------------------------------------------------------- */

/* Notes that the files of these data operations are opened. Called with the lock held. */
static void note_reading(Replay *x, const Operation *operations, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (operations[i].kind == OPERATION_DATA)
            x->files[le32toh(x->pack->data[operations[i].index].file)].reading = true;
}

/* Cuts a run before a range of which a part is in memory. */
static size_t cut_run(const Replay *x, const Operation *operations, size_t n)
{
    size_t i = 0;

    while (i < n && x->needs[operations[i].index] == NEED_WHOLE)
        i++;
    return MAX(i, (size_t)1);
}

/* Takes the next operations of the worker's stream: a run that one request reads, or one operation.
 * Returns their number; 0 if there is none left. */
static size_t next_operations(Worker *w, Operation *ret)
{
    Replay *x = w->replay;
    StreamQueue *q = w->stream_queue;
    size_t n = 0;

    lock(x);
    /* q->next is read again after each wait, because the order may have changed. */
    if (x->recheck_until && clock_now(CLOCK_MONOTONIC) > x->recheck_until)
        q->next = q->end;
    while (q->next < q->leg && x->list.operations[q->next].kind == OPERATION_DATA &&
           q->busy_opens > 0)
        pthread_cond_wait(&x->opened, &x->lock);
    if (q->next < q->leg) {
        const Operation *first = &x->list.operations[q->next];

        n = x->recheck_until || x->options.wait || (x->options.skip_resident && x->leg != LEG_DATA)
                    ? 1
                    : operations_run(x->pack, first, MIN(q->leg - q->next, w->run_max),
                                     x->mounted.volumes[first->volume].chunk_bytes);
        n = x->leg == LEG_DATA ? cut_run(x, first, n) : n;
        memcpy(ret, first, n * sizeof(Operation));
        q->next += n;
        w->sweeps = !x->hurried || x->order != REPLAY_ORDER_LIKELY;
        q->busy_opens += ret->kind == OPERATION_OPEN && !x->recheck_until;
        note_reading(x, ret, n);
    }
    unlock(x);
    return n;
}

static void *work(void *arg)
{
    Worker *w = arg;
    Replay *x = w->replay;
    Operation operations[OPERATION_RUN_MAX];
    size_t n;

    while ((n = next_operations(w, operations)) > 0) {
        follow_io_class(w);
        follow_readers(w);
        if (n > 1)
            execute_run(w, operations, n);
        else if (x->leg == LEG_SURVEY)
            survey_range(w, &operations[0]);
        else if (operations[0].kind != OPERATION_OPEN)
            execute_range(w, &operations[0]);
        else if (!x->recheck_until)
            execute_open(w, &operations[0]);
    }
    while ((x->options.wait || x->drains) && w->pacer.in_flight_requests > 0)
        await_oldest(w);
    return NULL;
}

static void workers_free(Worker *workers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(workers[i].queue);
        free(workers[i].scratch);
    }
    free(workers);
}

/* Returns the number of workers of a stream: at most one per operation, and at most one per four
 * descriptors (one if there are fewer than four). Each worker may have descriptors of a path, of a
 * file and of chunks in flight open at the same time. */
static unsigned workers_of(const Stream *s, uint32_t descriptors)
{
    return (unsigned)MIN(MIN((size_t)s->n_workers, s->n), MAX((size_t)descriptors / 4, (size_t)1));
}

/* Sets the window and the longest run of a worker, one of `of_queue` of the stream. Half of its
 * `descriptors` are for chunks in flight, because each holds one; the others are for the path and
 * the files of a run, which are open at the same time. Returns 0 or -ENOMEM. */
static int worker_prepare(Worker *w, unsigned of_queue, uint32_t descriptors)
{
    const Stream *s = w->stream_queue->stream;
    uint32_t in_flight = MAX(descriptors / 2, 1U);

    w->run_max = descriptors > in_flight + 1 ? descriptors - in_flight - 1 : 1;
    w->head = UINT64_MAX;
    w->alone = of_queue == 1;
    pacer_init(&w->pacer, s->window_bytes / of_queue,
               MIN(s->window_requests / of_queue, in_flight));
    if (w->replay->leg == LEG_DATA)
        pacer_limit(&w->pacer, UINT64_MAX, REQUESTS_BESIDE);
    w->queue_size = w->pacer.window_requests;
    w->beside_bytes = s->beside_bytes / of_queue;
    w->beside_requests = s->beside_requests / of_queue;
    w->queue = calloc(w->queue_size, sizeof(Chunk));
    w->scratch = malloc(SCRATCH_BYTES);
    return w->queue && w->scratch ? 0 : -ENOMEM;
}

/* Runs at most `most` workers of each stream until no operation of the leg is left. */
static int run_workers(Replay *x, uint32_t descriptors, unsigned most)
{
    size_t n = 0, n_queues = x->list.n_streams, at = 0;
    Worker *workers;
    bool failed = false;
    int r = 0;

    for (size_t i = 0; i < n_queues; i++)
        n += MIN(workers_of(&x->list.streams[i], descriptors), most);
    workers = calloc(n + 1, sizeof(Worker));
    if (!workers)
        return -ENOMEM;
    for (size_t i = 0; i < n_queues; i++) {
        unsigned of_queue = MIN(workers_of(&x->list.streams[i], descriptors), most);

        for (unsigned j = 0; j < of_queue && r >= 0; j++) {
            Worker *w = &workers[at++];

            w->replay = x;
            w->stream_queue = &x->queues[i];
            r = worker_prepare(w, of_queue, descriptors / MAX((uint32_t)n, 1U));
        }
    }
    /* The leader is worker 0. It also does the work of threads that cannot be started. */
    for (size_t i = 1; i < n && r >= 0; i++)
        workers[i].started = thread_start(&workers[i].thread, STACK_BYTES, work, &workers[i]) >= 0;
    for (size_t i = 0; i < n && r >= 0; i++)
        if (!workers[i].started)
            work(&workers[i]);
    for (size_t i = 1; i < n; i++)
        if (workers[i].started)
            pthread_join(workers[i].thread, NULL);
    for (size_t i = 0; i < n; i++)
        failed = failed || workers[i].failed;
    lock(x);
    x->result.resident = x->options.wait && r >= 0 && !failed && !x->stopped;
    unlock(x);
    workers_free(workers, n);
    return r;
}

/* Sorts the operations that were not begun. Called with the lock held. */
static void reorder(Replay *x)
{
    for (size_t i = 0; i < x->list.n_streams; i++) {
        StreamQueue *q = &x->queues[i];

        /* If memory runs out, the old order stays. */
        (void)operations_sort(x->pack, x->mounted.facts, x->order, x->list.operations + q->next,
                              q->end - q->next);
    }
}

/* Returns the number of operations of the queue that were not begun. Reading data has opened some
 * of the files that are still to be opened. Called with the lock held. */
static uint64_t count_left(const Replay *x, const StreamQueue *q)
{
    uint64_t n = 0;

    for (size_t i = q->next; i < q->end; i++) {
        const Operation *o = &x->list.operations[i];

        n += o->kind != OPERATION_OPEN || x->files[o->index].state == FILE_UNTRIED;
    }
    return n;
}

/* Drops the operations that were not begun. Called with the lock held. */
static void drop_queues(Replay *x)
{
    for (size_t i = 0; i < x->list.n_streams; i++) {
        StreamQueue *q = &x->queues[i];

        if (!x->recheck_until)
            x->result.n_skipped[REPLAY_SKIP_STOPPED] += count_left(x, q);
        q->next = q->leg = q->end;
    }
}

/* Queues all operations, none of them begun. */
static void queues_fill(Replay *x)
{
    for (size_t i = 0; i < x->list.n_streams; i++)
        x->queues[i] = (StreamQueue){.stream = &x->list.streams[i],
                                     .next = x->list.streams[i].first,
                                     .leg = x->list.streams[i].first + x->list.streams[i].n,
                                     .end = x->list.streams[i].first + x->list.streams[i].n};
}

/* Leaves out what earlier replays have read, if it is still in memory. If memory runs out, the list
 * stays as it is. */
static void leave_out_earlier(const Replay *x, OperationList *list)
{
    for (size_t i = 0; i < REPLAY_EARLIER_MAX; i++) {
        const EarlierPack *e = &x->options.earlier[i];
        _cleanup_mounted_table_ MountedTable mounted = {0};

        if (!e->pack)
            continue;
        if (e->running || (mounted_table_read(e->pack, x->options.root, &mounted) >= 0 &&
                           pack_is_resident(e->pack, &mounted)))
            (void)operations_subtract(x->pack, e->pack, list);
    }
}

/* Finds the filesystems and lists the operations. Returns 0, or a negative errno with *x
 * unchanged. */
static int find_operations(Replay *x)
{
    MountedTable mounted = {0};
    OperationList list = {0};
    int r = mounted_table_read(x->pack, x->options.root, &mounted);

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < mounted.n; i++) {
        mounted.facts[i].done = x->options.done && x->options.done[i];
        /* The marker is removed before anything is read, because the unit that checks for it may
         * start soon. */
        if (!mounted.facts[i].mounted && !mounted.facts[i].done)
            marker_set(x->options.marker, false);
    }
    r = operations_from_pack(x->pack, mounted.facts, x->options.policy, &list);
    if (r < 0) {
        mounted_table_done(&mounted);
        return r;
    }
    if (x->options.executable)
        operations_beside_application(&list, x->pack, x->options.executable);
    leave_out_earlier(x, &list);
    lock(x);
    x->mounted = mounted;
    x->list = list;
    for (int i = 0; i < _REPLAY_SKIP_MAX; i++)
        x->result.n_skipped[i] += list.n_skipped[i];
    x->result.resident = list.n == 0 && x->options.wait;
    unlock(x);
    return 0;
}

/* Makes the files and queues of the list. If replay_stop() or replay_hurry() was called before, its
 * effect on the queues takes place now. Returns 0 or -ENOMEM. */
static int prepare_queues(Replay *x, uint32_t descriptors)
{
    uint32_t n_files = le32toh(x->pack->header->n_files);

    x->keep_open = descriptors / 2;
    x->files = calloc((size_t)n_files + 1, sizeof(File));
    x->queues = calloc(x->list.n_streams + 1, sizeof(StreamQueue));
    if (!x->files || !x->queues)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_files; i++)
        x->files[i].fd = -EBADF;
    for (size_t i = 0; i < x->list.n; i++)
        if (x->list.operations[i].kind == OPERATION_DATA) {
            const PackData *d = &x->pack->data[x->list.operations[i].index];
            File *f = &x->files[le32toh(d->file)];

            f->left++;
            f->bytes += le64toh(d->length);
            f->end = MAX(f->end, le64toh(d->offset) + le64toh(d->length));
        }
    queues_fill(x);
    lock(x);
    x->listed = true;
    if (x->stopped)
        drop_queues(x);
    else if (x->hurried)
        reorder(x);
    unlock(x);
    return 0;
}

/* Carries out the recheck, unless replay_stop() was called. A sweep takes seconds, and the pages
 * that it read first may have been reclaimed. Pages that are still resident are not read again. The
 * recheck begins no operation after a tenth of the time of the sweep. */
static int recheck(Replay *x, usec_t sweep_start, uint32_t descriptors)
{
    usec_t now = clock_now(CLOCK_MONOTONIC);
    bool stopped;

    lock(x);
    stopped = x->stopped;
    if (!stopped) {
        x->recheck_until = now + (now - sweep_start) / 10;
        queues_fill(x);
    }
    unlock(x);
    return stopped ? 0 : run_workers(x, descriptors, UINT_MAX);
}

/* Returns true if the replay consists of legs: it runs next to an application that starts, and all
 * of its operations are on one disk that seeks. */
static bool has_legs(const Replay *x)
{
    return x->options.executable && x->list.n_streams == 1 && x->list.streams[0].beside;
}

/* Returns where the leg ends that begins with the next operation. Called with the lock held. */
static size_t find_end(const Replay *x, const StreamQueue *q, Leg leg)
{
    const Operation *o = &x->list.operations[q->next];
    size_t n = q->end - q->next, i = 0;

    if (leg == LEG_EXECUTABLE)
        i = operations_of_file(x->pack, o, n, x->options.executable);
    else if (leg == LEG_DATA)
        i = operations_of_bin(x->pack, o, n);
    else if (leg == LEG_OPENS)
        i = n;
    else
        while (i < n && o[i].kind == (leg == LEG_METADATA ? OPERATION_METADATA : OPERATION_DATA))
            i++;
    return q->next + i;
}

/* Drops what the survey has left out of the data before the end of the leg. Called with the lock
 * held, while no worker runs. */
static void drop_left_out(Replay *x, StreamQueue *q)
{
    Operation *o = x->list.operations;
    size_t at = q->leg;

    for (size_t i = q->leg; i-- > q->surveyed;)
        if (x->needs[o[i].index] != NEED_NONE)
            o[--at] = o[i];
    q->next = at;
}

/* Begins a leg. Returns false if it has no operations. */
static bool begin_leg(Replay *x, Leg leg, uint64_t *head)
{
    StreamQueue *q = &x->queues[0];
    Operation *o = x->list.operations;
    bool any;

    lock(x);
    if (leg == LEG_DATA && x->leg == LEG_SURVEY && !x->stopped)
        drop_left_out(x, q);
    x->leg = leg;
    q->leg = find_end(x, q, leg);
    any = q->next < q->leg;
    if (any && leg == LEG_DATA)
        (void)operations_nearest_first(x->pack, x->mounted.facts, o + q->next, q->leg - q->next,
                                       *head);
    if (any && (leg == LEG_DATA || leg == LEG_EXECUTABLE))
        *head = operation_place(x->pack, x->mounted.facts, &o[q->leg - 1]);
    q->surveyed = q->next;
    x->drains = leg == LEG_DATA && q->leg < q->end;
    unlock(x);
    return any;
}

/* Reads next to an application that starts, one leg after the other:
 *
 * - the executable, for which the application waits first;
 * - metadata, which the opens need;
 * - a survey: several workers open the files and find out which data are missing, so that an open
 *   that waits for the disk delays no other;
 * - the data of each bin of first use: one worker sweeps over what is missing, from the place where
 *   the head of the disk is, and joins neighbours. The application needs about the same data at
 *   that time, so that its own reads do not move the head far away;
 * - files without data, which are only opened.
 *
 * Only a worker that is alone requests neighbours upwards. A disk that has the requests of several
 * workers reads what is nearest, and takes most of a rotation between two neighbours if it reads
 * them downwards. */
static int run_legs(Replay *x, uint32_t descriptors)
{
    static const struct {
        Leg leg;
        unsigned workers;
    } legs[] = {
            {LEG_EXECUTABLE, 1}, {LEG_METADATA, 1},     {LEG_SURVEY, UINT_MAX},
            {LEG_DATA, 1},       {LEG_OPENS, UINT_MAX},
    };
    uint64_t head = 0;
    int r = 0;

    x->needs = calloc((size_t)le32toh(x->pack->header->n_data) + 1, sizeof(Need));
    if (!x->needs)
        return -ENOMEM;
    for (size_t i = 0; i < ELEMENTSOF(legs); i++)
        while (r >= 0 && begin_leg(x, legs[i].leg, &head)) {
            r = run_workers(x, descriptors, legs[i].workers);
            if (legs[i].leg != LEG_DATA)
                break;
        }
    return r;
}

static int run(Replay *x)
{
    uint64_t n_files = le32toh(x->pack->header->n_files);
    uint32_t descriptors;
    usec_t start;
    int r = find_operations(x);

    if (r < 0 || x->list.n == 0)
        return r;
    descriptors = descriptors_raise(DESCRIPTORS_OWN + 2ULL * x->mounted.n, n_files * 2 + 1024);
    r = prepare_queues(x, descriptors);
    if (r < 0)
        return r;
    start = clock_now(CLOCK_MONOTONIC);
    descriptors = MAX(descriptors / 2, 1U);
    r = has_legs(x) ? run_legs(x, descriptors) : run_workers(x, descriptors, UINT_MAX);
    if (r < 0 || (!x->options.wait && x->options.policy != POLICY_IDLE))
        return r;
    return recheck(x, start, descriptors);
}

static void *lead(void *arg)
{
    Replay *x = arg;
    int r = run(x);

    lock(x);
    x->error = r;
    x->done = true;
    unlock(x);
    pthread_kill(x->starter, x->options.done_signal);
    return NULL;
}

int replay_start(const Pack *p, const ReplayOptions *o, Replay **ret)
{
    Replay *x = calloc(1, sizeof(Replay));

    if (!x)
        return -ENOMEM;
    x->pack = p;
    x->options = *o;
    x->starter = pthread_self();
    atomic_init(&x->io_class, (int)o->io_class);
    atomic_init(&x->beside, o->policy == POLICY_CONCURRENT);
    pthread_mutex_init(&x->lock, NULL);
    pthread_cond_init(&x->opened, NULL);
    if (thread_start(&x->leader, STACK_BYTES, lead, x) < 0) {
        free(x);
        return -EAGAIN;
    }
    *ret = x;
    return 0;
}

bool replay_result(Replay *x, ReplayResult *ret, int *ret_error)
{
    bool done;

    lock(x);
    *ret = x->result;
    done = x->done;
    for (size_t i = 0; x->listed && !x->recheck_until && i < x->list.n_streams; i++)
        ret->n_skipped[REPLAY_SKIP_STOPPED] += count_left(x, &x->queues[i]);
    if (!done)
        ret->resident = false;
    if (ret_error)
        *ret_error = x->error;
    unlock(x);
    return done;
}

void replay_hurry(Replay *x, ReplayOrder order, IoClass io_class)
{
    atomic_store(&x->io_class, (int)io_class);
    atomic_store(&x->beside, true);
    lock(x);
    x->hurried = true;
    x->order = order;
    if (x->listed)
        reorder(x);
    unlock(x);
}

void replay_stop(Replay *x)
{
    lock(x);
    x->stopped = true;
    if (x->listed)
        drop_queues(x);
    unlock(x);
}

void replay_mark_mounted(const Replay *x, bool *done)
{
    for (uint32_t i = 0; i < x->mounted.n; i++)
        done[i] = done[i] || x->mounted.facts[i].mounted;
}

Replay *replay_free(Replay *x)
{
    if (!x)
        return NULL;
    pthread_join(x->leader, NULL);
    for (uint32_t i = 0; x->files && i < le32toh(x->pack->header->n_files); i++)
        if (x->files[i].fd >= 0)
            close(x->files[i].fd);
    free(x->files);
    free(x->needs);
    free(x->queues);
    operation_list_done(&x->list);
    mounted_table_done(&x->mounted);
    pthread_cond_destroy(&x->opened);
    pthread_mutex_destroy(&x->lock);
    free(x);
    return NULL;
}
