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
 *   list.operations from        reorder(), with lock           take_operation(), with lock
 *   queues[].next on
 *   queues[].next, .busy_opens  workers, with lock             workers and callers, with lock
 *   files[].*, n_open           workers, with lock             workers, with lock
 *   listed, hurried, order,     leader or caller, with lock    everyone, with lock
 *   stopped, done, error,
 *   result
 *   recheck_until               the leader, with lock, while   workers, without the lock: their
 *                               no worker runs                 threads start after the change
 *   io_class (atomic)           any caller                     workers, before each operation
 *
 *   The condition `opened` is signalled when queues[].busy_opens becomes 0; data waits for it. A
 *   Worker, its ring and its scratch buffer belong to one thread.
 *
 * The executor is one file, because its lock map must be checked against all of its functions. */

#include "replay/executor.h"

#include "base/cachestat.h"
#include "base/clock.h"
#include "base/directory.h"
#include "replay/marker.h"
#include "replay/opening.h"
#include "replay/pacer.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>

#define STACK_BYTES     (256U * 1024)
#define SCRATCH_BYTES   (128U * 1024)
#define DESCRIPTORS_OWN 24U /* open besides the files of the pack */

/* State of a file of the pack. */
typedef enum FileState {
    FILE_UNTRIED,
    FILE_SKIPPED, /* and counted */
    FILE_FOUND,   /* it is the planned file; it is opened again if fd was closed */
} FileState;

typedef struct File {
    int fd; /* < 0: not open */
    FileState state;
    uint32_t in_flight; /* chunks in flight: the descriptor is in use */
    uint32_t left;      /* data operations that were not begun */
    uint64_t end;       /* of its last range */
} File;

typedef struct StreamQueue {
    const Stream *stream;
    size_t next, end;    /* operations that were not begun */
    unsigned busy_opens; /* opens under way; data waits until there are none */
} StreamQueue;

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
    bool done;
    int error;
    uint32_t n_open, keep_open;
    ReplayResult result;

    atomic_int io_class;
};

#define CHUNK_OF_DEVICE UINT32_MAX

/* A part of an operation, in flight. */
typedef struct Chunk {
    int fd;
    uint32_t file; /* CHUNK_OF_DEVICE, or index of the file in the pack */
    uint32_t length;
    uint64_t offset;
} Chunk;

typedef struct Worker {
    Replay *replay;
    StreamQueue *stream_queue;
    pthread_t thread;
    Pacer pacer;
    Chunk *queue; /* a ring of pacer.window_requests */
    uint32_t head;
    char *scratch;
    IoClass io_class;
    bool started;
    bool failed; /* a chunk could not be read */
} Worker;

static void lock(Replay *r)
{
    pthread_mutex_lock(&r->lock);
}

static void unlock(Replay *r)
{
    pthread_mutex_unlock(&r->lock);
}

static void follow_io_class(Worker *w)
{
    IoClass c = (IoClass)atomic_load_explicit(&w->replay->io_class, memory_order_relaxed);

    if (c == w->io_class)
        return;
    w->io_class = c;
    thread_set_io_class(c);
}

/* --- descriptors ------------------------------------------------------------------------------ */

/* Closes the file's descriptor if no operation needs it. Called with the lock held. Returns the
 * descriptor, which the caller closes, or -EBADF. */
static int drop_descriptor(Replay *r, File *f)
{
    int fd = f->fd;

    if (fd < 0 || f->in_flight > 0 || (f->left > 0 && r->n_open <= r->keep_open))
        return -EBADF;
    f->fd = -EBADF;
    r->n_open--;
    return fd;
}

static void await_oldest(Worker *w);

static int open_file(Worker *w, uint32_t volume, const PackFile *f, bool reading, ReplaySkip *why)
{
    const Replay *r = w->replay;
    int fd;

    for (;;) {
        fd = open_planned(r->mounted.volumes[volume].root_fd, pack_string(r->pack, f->path), f,
                          reading, why);
        if ((fd != -EMFILE && fd != -ENFILE) || w->pacer.in_flight_requests == 0)
            return fd;
        await_oldest(w);
    }
}

static void execute_open(Worker *w, const Operation *op)
{
    Replay *r = w->replay;
    const PackFile *f = &r->pack->files[op->index];
    bool directory = le16toh(f->flags) & PACK_FILE_DIRECTORY;
    bool touch =
            directory && (le32toh(r->pack->volumes[op->volume].flags) & PACK_VOLUME_TOUCH_ENTRIES);
    File *file = &r->files[op->index];
    ReplaySkip why = REPLAY_SKIP_ERROR;
    bool keep;
    int fd;

    lock(r);
    keep = file->left > 0 && r->n_open < r->keep_open;
    if (keep)
        r->n_open++;
    unlock(r);
    fd = open_file(w, op->volume, f, keep || touch, &why);
    if (fd >= 0 && touch) {
        directory_read_ahead(fd, 0);
        close(fd);
    }
    lock(r);
    if (fd >= 0) {
        file->state = FILE_FOUND;
        r->result.n_opened++;
    } else {
        file->state = FILE_SKIPPED;
        r->result.n_skipped[why]++;
    }
    if (keep && fd >= 0)
        file->fd = fd;
    else if (keep)
        r->n_open--;
    if (--w->stream_queue->busy_opens == 0)
        pthread_cond_broadcast(&r->opened);
    unlock(r);
}

/* A descriptor for reading the file's data, or a negative errno. Each call is paired with one of
 * release_file(). */
static int acquire_file(Worker *w, const Operation *op, uint32_t index)
{
    Replay *r = w->replay;
    File *f = &r->files[index];
    ReplaySkip why = REPLAY_SKIP_ERROR;
    int fd, mine = -EBADF;

    lock(r);
    if (f->state != FILE_FOUND) {
        unlock(r);
        return -ENOENT; /* the error was counted when the file was opened */
    }
    if (f->fd < 0) {
        unlock(r);
        mine = open_file(w, op->volume, &r->pack->files[index], true, &why);
        if (mine < 0) {
            lock(r);
            r->result.n_skipped[why]++;
            unlock(r);
            return mine;
        }
        lock(r);
        if (f->fd < 0) {
            f->fd = mine;
            r->n_open++;
            mine = -EBADF;
        }
    }
    f->in_flight++;
    fd = f->fd;
    unlock(r);
    if (mine >= 0)
        close(mine); /* another worker has opened the file meanwhile */
    return fd;
}

static void release_file(Replay *r, uint32_t index)
{
    int fd;

    lock(r);
    r->files[index].in_flight--;
    fd = drop_descriptor(r, &r->files[index]);
    unlock(r);
    if (fd >= 0)
        close(fd);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Waits for the oldest chunk in flight by reading from it. The read returns when the page is there.
 * It also reads a page that was reclaimed or that the kernel did not read ahead. Reading the last
 * byte suffices to limit the window. With `wait` the whole chunk is read, so that all of it is
 * resident. */
static void await_oldest(Worker *w)
{
    const Chunk *c = &w->queue[w->head];
    const Replay *r = w->replay;
    uint64_t end = c->offset + c->length, at = c->offset;

    if (c->file != CHUNK_OF_DEVICE)
        end = MIN(end, le64toh(r->pack->files[c->file].size));
    if (!r->options.wait && end > at)
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
    pacer_completed(&w->pacer, c->length);
    w->head = (w->head + 1) % w->pacer.window_requests;
    if (c->file != CHUNK_OF_DEVICE)
        release_file(w->replay, c->file);
}

/* Submits one chunk. On success await_oldest() releases its file later; on failure the caller does.
 * readahead(2) does the same, but it refused block devices in Linux 4.19 to 6.6. */
static int submit(Worker *w, const Chunk *c)
{
    int error;

    while (!pacer_may_submit(&w->pacer, c->length))
        await_oldest(w);
    error = posix_fadvise(c->fd, (off_t)c->offset, c->length, POSIX_FADV_WILLNEED);
    if (error != 0)
        return -error;
    w->queue[(w->head + w->pacer.in_flight_requests) % w->pacer.window_requests] = *c;
    pacer_submitted(&w->pacer, c->length);
    return 0;
}

/* Returns the end of the data that follows the planned end of a file. Skips short holes, because a
 * journal leaves out single blocks. The search ends shortly after `limit`. */
static uint64_t find_data_end(int fd, uint64_t end, uint64_t limit)
{
    off_t hole = lseek(fd, (off_t)end - 1, SEEK_HOLE); /* reads use pread(2) */

    while (hole > 0 && (uint64_t)hole >= end && (uint64_t)hole < limit) {
        off_t data = lseek(fd, hole, SEEK_DATA);

        if (data < 0 || (uint64_t)(data - hole) > OPERATION_HOLE_MAX)
            break;
        hole = lseek(fd, data, SEEK_HOLE);
    }
    return hole > 0 ? (uint64_t)hole : 0;
}

/* How many bytes behind a range of the file, which ends at `end`, are read as well. */
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

static void execute_range(Worker *w, const Operation *op)
{
    Replay *r = w->replay;
    const MountedVolume *m = &r->mounted.volumes[op->volume];
    bool metadata = op->kind == OPERATION_METADATA;
    uint32_t index = metadata ? CHUNK_OF_DEVICE : le32toh(r->pack->data[op->index].file);
    uint64_t offset, length, at, resident = 0;
    int k = 0;

    operation_range(r->pack, op, &offset, &length);
    if (!metadata)
        length += appended_bytes(w, op, index, offset + length);
    if (!metadata && !r->recheck_until) {
        lock(r);
        r->files[index].left--;
        unlock(r);
    }
    for (at = 0; at < length && k >= 0;) {
        Chunk c = {
                .fd = m->device_fd,
                .file = index,
                .length = (uint32_t)MIN(length - at, (uint64_t)m->chunk_bytes),
                .offset = offset + at,
        };

        if (!metadata) {
            c.fd = acquire_file(w, op, index);
            if (c.fd < 0)
                return;
        }
        if (r->recheck_until && cachestat_is_resident(c.fd, c.offset, c.length) != 0)
            k = 1;
        else if (r->options.skip_resident && cachestat_is_resident(c.fd, c.offset, c.length) > 0) {
            k = 1;
            resident += c.length;
        } else
            k = submit(w, &c);
        if (k != 0 && !metadata)
            release_file(r, index);
        if (k >= 0)
            at += c.length;
    }
    if (r->recheck_until)
        return;
    lock(r);
    if (k < 0)
        r->result.n_skipped[REPLAY_SKIP_ERROR]++;
    else if (metadata)
        r->result.n_metadata++;
    else
        r->result.n_data++;
    *(metadata ? &r->result.metadata_bytes : &r->result.data_bytes) += at - resident;
    r->result.resident_bytes += resident;
    unlock(r);
}

/* --- workers ---------------------------------------------------------------------------------- */

/* Takes the next operation of the worker's stream; false if there is none left. */
static bool take_operation(Worker *w, Operation *ret)
{
    Replay *r = w->replay;
    StreamQueue *q = w->stream_queue;
    bool taken = false;

    lock(r);
    /* q->next is read again after each wait, because the order may have changed. */
    if (r->recheck_until && clock_now(CLOCK_MONOTONIC) > r->recheck_until)
        q->next = q->end;
    while (q->next < q->end && r->list.operations[q->next].kind == OPERATION_DATA &&
           q->busy_opens > 0)
        pthread_cond_wait(&r->opened, &r->lock);
    if (q->next < q->end) {
        *ret = r->list.operations[q->next++];
        q->busy_opens += ret->kind == OPERATION_OPEN && !r->recheck_until;
        taken = true;
    }
    unlock(r);
    return taken;
}

static void *work(void *arg)
{
    Worker *w = arg;
    Replay *r = w->replay;
    Operation op;

    while (take_operation(w, &op)) {
        follow_io_class(w);
        if (op.kind != OPERATION_OPEN)
            execute_range(w, &op);
        else if (!r->recheck_until)
            execute_open(w, &op);
    }
    while (r->options.wait && w->pacer.in_flight_requests > 0)
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

/* Workers of a stream: at most one per four descriptors, since each may hold a path, a file and
 * chunks in flight at the same time. */
static unsigned workers_of(const Stream *s, uint32_t descriptors)
{
    return (unsigned)MIN(MIN((size_t)s->n_workers, s->n), MAX((size_t)descriptors / 4, (size_t)1));
}

static int run_workers(Replay *r, uint32_t descriptors)
{
    size_t n = 0, n_queues = r->list.n_streams, at = 0;
    Worker *workers;
    bool failed = false;
    int k = 0;

    for (size_t i = 0; i < n_queues; i++)
        n += workers_of(&r->list.streams[i], descriptors);
    workers = calloc(n + 1, sizeof(Worker));
    if (!workers)
        return -ENOMEM;
    for (size_t i = 0; i < n_queues; i++) {
        const Stream *s = &r->list.streams[i];
        unsigned of_queue = workers_of(s, descriptors);

        for (unsigned j = 0; j < of_queue; j++) {
            Worker *w = &workers[at++];

            w->replay = r;
            w->stream_queue = &r->queues[i];
            /* Each chunk in flight holds a descriptor. */
            pacer_init(&w->pacer, s->window_bytes / of_queue,
                       MIN(s->window_requests / of_queue, descriptors / (uint32_t)n));
            w->queue = calloc(w->pacer.window_requests, sizeof(Chunk));
            w->scratch = malloc(SCRATCH_BYTES);
            if (!w->queue || !w->scratch)
                k = -ENOMEM;
        }
    }
    /* The leader is worker 0. It also does the work of threads that cannot be started. */
    for (size_t i = 1; i < n && k >= 0; i++)
        workers[i].started = thread_start(&workers[i].thread, STACK_BYTES, work, &workers[i]) >= 0;
    for (size_t i = 0; i < n && k >= 0; i++)
        if (!workers[i].started)
            work(&workers[i]);
    for (size_t i = 1; i < n; i++)
        if (workers[i].started)
            pthread_join(workers[i].thread, NULL);
    for (size_t i = 0; i < n; i++)
        failed = failed || workers[i].failed;
    lock(r);
    r->result.resident = r->options.wait && k >= 0 && !failed;
    unlock(r);
    workers_free(workers, n);
    return k;
}

/* Sorts the operations that were not begun. Called with the lock held. */
static void reorder(Replay *r)
{
    for (size_t i = 0; i < r->list.n_streams; i++) {
        StreamQueue *q = &r->queues[i];

        /* Out of memory: the old order stays. */
        (void)operations_sort(r->pack, r->mounted.facts, r->order, r->list.operations + q->next,
                              q->end - q->next);
    }
}

/* Drops the operations that were not begun. Called with the lock held. */
static void drop_queues(Replay *r)
{
    for (size_t i = 0; i < r->list.n_streams; i++) {
        StreamQueue *q = &r->queues[i];

        if (!r->recheck_until)
            r->result.n_skipped[REPLAY_SKIP_STOPPED] += q->end - q->next;
        q->next = q->end;
    }
}

/* Queues all operations, none of them begun. */
static void queues_fill(Replay *r)
{
    for (size_t i = 0; i < r->list.n_streams; i++)
        r->queues[i] = (StreamQueue){.stream = &r->list.streams[i],
                                     .next = r->list.streams[i].first,
                                     .end = r->list.streams[i].first + r->list.streams[i].n};
}

/* Finds the filesystems and lists the operations. 0, or a negative errno with r unchanged. */
static int find_operations(Replay *r)
{
    MountedTable mounted = {0};
    OperationList list = {0};
    int k = mounted_table_read(r->pack, r->options.root, &mounted);

    if (k < 0)
        return k;
    for (uint32_t i = 0; i < mounted.n; i++) {
        mounted.facts[i].done = r->options.done && r->options.done[i];
        /* The marker is set before anything is read, because the unit that checks it may start
         * soon. */
        if (!mounted.facts[i].mounted && !mounted.facts[i].done)
            marker_set(r->options.marker, false);
    }
    k = operations_from_pack(r->pack, mounted.facts, r->options.policy, &list);
    if (k < 0) {
        mounted_table_done(&mounted);
        return k;
    }
    lock(r);
    r->mounted = mounted;
    r->list = list;
    for (int i = 0; i < _REPLAY_SKIP_MAX; i++)
        r->result.n_skipped[i] += list.n_skipped[i];
    r->result.resident = list.n == 0 && r->options.wait;
    unlock(r);
    return 0;
}

/* Makes the files and queues of the list, and lets replay_hurry() reorder it. 0 or -ENOMEM. */
static int prepare_queues(Replay *r, uint32_t descriptors)
{
    uint32_t n_files = le32toh(r->pack->header->n_files);

    r->keep_open = descriptors / 2;
    r->files = calloc((size_t)n_files + 1, sizeof(File));
    r->queues = calloc(r->list.n_streams + 1, sizeof(StreamQueue));
    if (!r->files || !r->queues)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_files; i++)
        r->files[i].fd = -EBADF;
    for (size_t i = 0; i < r->list.n; i++)
        if (r->list.operations[i].kind == OPERATION_DATA) {
            const PackData *d = &r->pack->data[r->list.operations[i].index];
            File *f = &r->files[le32toh(d->file)];

            f->left++;
            f->end = MAX(f->end, le64toh(d->offset) + le64toh(d->length));
        }
    queues_fill(r);
    lock(r);
    r->listed = true;
    if (r->stopped)
        drop_queues(r);
    else if (r->hurried)
        reorder(r);
    unlock(r);
    return 0;
}

/* The recheck: a sweep takes seconds, and the pages that it read first may have been reclaimed.
 * Pages that are still resident are not read again. It takes at most a tenth of the time of the
 * sweep. */
static int recheck(Replay *r, usec_t sweep_start, uint32_t descriptors)
{
    usec_t now = clock_now(CLOCK_MONOTONIC);

    lock(r);
    r->recheck_until = now + (now - sweep_start) / 10;
    queues_fill(r);
    unlock(r);
    return run_workers(r, descriptors);
}

static int run(Replay *r)
{
    uint64_t n_files = le32toh(r->pack->header->n_files);
    uint32_t descriptors;
    usec_t start;
    int k = find_operations(r);

    if (k < 0 || r->list.n == 0)
        return k;
    descriptors = descriptors_raise(DESCRIPTORS_OWN + 2ULL * r->mounted.n, n_files * 2 + 1024);
    k = prepare_queues(r, descriptors);
    if (k < 0)
        return k;
    start = clock_now(CLOCK_MONOTONIC);
    k = run_workers(r, MAX(descriptors / 2, 1U));
    if (k < 0 || r->stopped || (!r->options.wait && r->options.policy != POLICY_IDLE))
        return k;
    return recheck(r, start, MAX(descriptors / 2, 1U));
}

static void *lead(void *arg)
{
    Replay *r = arg;
    int k = run(r);

    lock(r);
    r->error = k;
    r->done = true;
    unlock(r);
    pthread_kill(r->starter, r->options.done_signal);
    return NULL;
}

int replay_start(const Pack *p, const ReplayOptions *o, Replay **ret)
{
    Replay *r = calloc(1, sizeof(Replay));

    if (!r)
        return -ENOMEM;
    r->pack = p;
    r->options = *o;
    r->starter = pthread_self();
    atomic_init(&r->io_class, (int)o->io_class);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->opened, NULL);
    if (thread_start(&r->leader, STACK_BYTES, lead, r) < 0) {
        free(r);
        return -EAGAIN;
    }
    *ret = r;
    return 0;
}

bool replay_result(Replay *r, ReplayResult *ret, int *ret_error)
{
    bool done;

    lock(r);
    *ret = r->result;
    done = r->done;
    for (size_t i = 0; r->listed && !r->recheck_until && i < r->list.n_streams; i++)
        ret->n_skipped[REPLAY_SKIP_STOPPED] += r->queues[i].end - r->queues[i].next;
    if (!done)
        ret->resident = false;
    if (ret_error)
        *ret_error = r->error;
    unlock(r);
    return done;
}

void replay_hurry(Replay *r, ReplayOrder order, IoClass io_class)
{
    atomic_store(&r->io_class, (int)io_class);
    lock(r);
    r->hurried = true;
    r->order = order;
    if (r->listed)
        reorder(r);
    unlock(r);
}

void replay_stop(Replay *r)
{
    lock(r);
    r->stopped = true;
    if (r->listed)
        drop_queues(r);
    unlock(r);
}

void replay_mark_mounted(const Replay *r, bool *done)
{
    for (uint32_t i = 0; i < r->mounted.n; i++)
        done[i] = done[i] || r->mounted.facts[i].mounted;
}

Replay *replay_free(Replay *r)
{
    if (!r)
        return NULL;
    pthread_join(r->leader, NULL);
    for (uint32_t i = 0; r->files && i < le32toh(r->pack->header->n_files); i++)
        if (r->files[i].fd >= 0)
            close(r->files[i].fd);
    free(r->files);
    free(r->queues);
    operation_list_done(&r->list);
    mounted_table_done(&r->mounted);
    pthread_cond_destroy(&r->opened);
    pthread_mutex_destroy(&r->lock);
    free(r);
    return NULL;
}
