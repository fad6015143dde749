/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One leader finds the filesystems and builds the list, then it and further workers carry out the
 * streams. Each worker keeps what it asked for in a queue of its own, as long as the pacer allows;
 * to make room it awaits the oldest, by reading from it: POSIX_FADV_WILLNEED says nothing of
 * arrivals. Long, because all of that happens under one lock. */

#include "replay/executor.h"

#include "base/cachestat.h"
#include "base/clock.h"
#include "base/directory.h"
#include "replay/opening.h"
#include "replay/pacer.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#define IO_CLASS_SHIFT  13
#define IO_LEVEL        4U /* of best-effort: the kernel's default */
#define WHO_PROCESS     1
#define STACK_BYTES     (256U * 1024)
#define SCRATCH_BYTES   (128U * 1024)
#define DESCRIPTORS_OWN 24U /* what is open beside the files of the pack */

/* What became of a file of the pack. */
typedef enum FileState {
    FILE_UNTRIED,
    FILE_SKIPPED, /* counted when it was opened */
    FILE_FOUND,   /* it is the one that was planned; opened again if fd is closed */
} FileState;

typedef struct File {
    int fd; /* < 0: not open */
    FileState state;
    uint32_t in_flight; /* chunks asked for and not awaited: the descriptor is in use */
    uint32_t left;      /* data operations not begun */
} File;

typedef struct StreamQueue {
    const Stream *stream;
    size_t next, end;    /* operations not begun yet */
    unsigned busy_opens; /* data waits until these are done */
} StreamQueue;

struct Replay {
    const Pack *pack;
    ReplayOptions options;
    pthread_t starter, leader;
    pthread_attr_t attributes;

    MountedTable mounted;
    OperationList list;

    pthread_mutex_t lock; /* guards all that follows; never held over I/O */
    pthread_cond_t opened;
    File *files;         /* one a file of the pack */
    StreamQueue *queues; /* one a stream */
    bool listed;         /* list and queues can be used */
    bool hurried;        /* before there was a list */
    ReplayOrder order;
    usec_t recheck_until; /* the recheck asks for what was reclaimed meanwhile, until then; 0: the
                             first sweep is not over */
    bool done;
    int error;
    uint32_t n_open, keep_open;
    ReplayResult result;

    atomic_int io_class;
};

/* A piece of an operation that was asked for. */
typedef struct Chunk {
    int fd;
    uint32_t file; /* UINT32_MAX: of the block device */
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
    bool failed; /* something could not be awaited */
} Worker;

static void lock(Replay *r)
{
    pthread_mutex_lock(&r->lock);
}

static void unlock(Replay *r)
{
    pthread_mutex_unlock(&r->lock);
}

/* Of the calling thread alone. Not allowed, or no such thing: then at the usual priority. */
static void follow_io_class(Worker *w)
{
    IoClass c = (IoClass)atomic_load_explicit(&w->replay->io_class, memory_order_relaxed);

    if (c == w->io_class)
        return;
    w->io_class = c;
    syscall(SYS_ioprio_set, WHO_PROCESS, 0,
            (unsigned)c << IO_CLASS_SHIFT | (c == IO_CLASS_BEST_EFFORT ? IO_LEVEL : 0));
}

/* --- descriptors ------------------------------------------------------------------------------ */

/* Called with the lock held. Returns a descriptor for the caller to close, or -EBADF. */
static int let_go(Replay *r, File *f)
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

static void do_open(Worker *w, const Operation *op)
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

/* A descriptor for reading the file's data, in use until release() is called as often. */
static int acquire(Worker *w, const Operation *op, uint32_t index)
{
    Replay *r = w->replay;
    File *f = &r->files[index];
    ReplaySkip why = REPLAY_SKIP_ERROR;
    int fd, mine = -EBADF;

    lock(r);
    if (f->state != FILE_FOUND) {
        unlock(r);
        return -ENOENT; /* counted when it was opened */
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
        close(mine); /* another worker was quicker */
    return fd;
}

static void release(Replay *r, uint32_t index)
{
    int fd;

    lock(r);
    r->files[index].in_flight--;
    fd = let_go(r, &r->files[index]);
    unlock(r);
    if (fd >= 0)
        close(fd);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Returns when the chunk is there. A read waits for a page that is on its way, and brings in one
 * that was dropped, or that the kernel did not care to read ahead. To keep the window, the last
 * byte tells; to be sure of all of it, all of it is read. */
static void await_oldest(Worker *w)
{
    const Chunk *c = &w->queue[w->head];
    const Replay *r = w->replay;
    uint64_t end = c->offset + c->length, at = c->offset;

    if (c->file != UINT32_MAX)
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
    if (c->file != UINT32_MAX)
        release(w->replay, c->file);
}

/* Asks for one chunk; takes over the use of the file. Not by readahead(2), which is the same but
 * refused block devices in some kernels (Linux 4.19 to 6.6). */
static int ask(Worker *w, const Chunk *c)
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

static void do_range(Worker *w, const Operation *op)
{
    Replay *r = w->replay;
    const MountedVolume *m = &r->mounted.volumes[op->volume];
    bool metadata = op->kind == OPERATION_METADATA;
    uint32_t index = metadata ? UINT32_MAX : le32toh(r->pack->data[op->index].file);
    uint64_t offset, length, at;
    int k = 0;

    operation_range(r->pack, op, &offset, &length);
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
            c.fd = acquire(w, op, index);
            if (c.fd < 0)
                return;
        }
        if (r->recheck_until && cachestat_is_resident(c.fd, c.offset, c.length) != 0)
            k = 1;
        else
            k = ask(w, &c);
        if (k != 0 && !metadata)
            release(r, index);
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
    *(metadata ? &r->result.metadata_bytes : &r->result.data_bytes) += at;
    unlock(r);
}

/* --- workers ---------------------------------------------------------------------------------- */

/* The next operation of the worker's line; false if there is none left. */
static bool take(Worker *w, Operation *ret)
{
    Replay *r = w->replay;
    StreamQueue *q = w->stream_queue;
    bool taken = false;

    lock(r);
    /* Looked at again after each wait: the order may have changed. */
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

    while (take(w, &op)) {
        follow_io_class(w);
        if (op.kind != OPERATION_OPEN)
            do_range(w, &op);
        else if (!r->recheck_until)
            do_open(w, &op);
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

/* Workers of a stream: no more than there are descriptors for, since each opens a place, a file and
 * what it has under way at the same time. */
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
            /* Each chunk under way holds a descriptor. */
            pacer_init(&w->pacer, s->window_bytes / of_queue,
                       MIN(s->window_requests / of_queue, descriptors / (uint32_t)n));
            w->queue = calloc(w->pacer.window_requests, sizeof(Chunk));
            w->scratch = malloc(SCRATCH_BYTES);
            if (!w->queue || !w->scratch)
                k = -ENOMEM;
        }
    }
    /* The leader is the first; those that cannot be started leave their part to the others. */
    for (size_t i = 1; i < n && k >= 0; i++)
        workers[i].started =
                pthread_create(&workers[i].thread, &r->attributes, work, &workers[i]) == 0;
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

/* What is left, in another order. Called with the lock held. */
static void reorder(Replay *r)
{
    for (size_t i = 0; i < r->list.n_streams; i++) {
        StreamQueue *q = &r->queues[i];

        /* Out of memory: the old order does as well. */
        (void)operations_sort(r->pack, r->mounted.facts, r->order, r->list.operations + q->next,
                              q->end - q->next);
    }
}

/* All operations are to be begun. */
static void queues_fill(Replay *r)
{
    for (size_t i = 0; i < r->list.n_streams; i++)
        r->queues[i] = (StreamQueue){.stream = &r->list.streams[i],
                                     .next = r->list.streams[i].first,
                                     .end = r->list.streams[i].first + r->list.streams[i].n};
}

static int run(Replay *r)
{
    const Pack *p = r->pack;
    uint32_t n_files = le32toh(p->header->n_files), descriptors;
    usec_t start;
    MountedTable mounted = {0};
    OperationList list = {0};
    int k;

    k = mounted_table_read(p, r->options.root, &mounted);
    if (k < 0)
        return k;
    for (uint32_t i = 0; r->options.done && i < mounted.n; i++)
        mounted.facts[i].done = r->options.done[i];
    k = operations_from_pack(p, mounted.facts, r->options.policy, &list);
    if (k < 0) {
        mounted_table_done(&mounted);
        return k;
    }
    lock(r);
    r->mounted = mounted;
    r->list = list;
    for (int i = 0; i < _REPLAY_SKIP_MAX; i++)
        r->result.n_skipped[i] += list.n_skipped[i];
    unlock(r);
    if (list.n == 0) {
        lock(r);
        r->result.resident = r->options.wait;
        unlock(r);
        return 0;
    }

    descriptors = descriptors_raise(DESCRIPTORS_OWN + 2ULL * r->mounted.n, n_files * 2ULL + 1024);
    r->keep_open = descriptors / 2;
    r->files = calloc((size_t)n_files + 1, sizeof(File));
    r->queues = calloc(list.n_streams + 1, sizeof(StreamQueue));
    if (!r->files || !r->queues)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_files; i++)
        r->files[i].fd = -EBADF;
    for (size_t i = 0; i < list.n; i++)
        if (list.operations[i].kind == OPERATION_DATA)
            r->files[le32toh(p->data[list.operations[i].index].file)].left++;
    queues_fill(r);
    lock(r);
    r->listed = true;
    if (r->hurried)
        reorder(r);
    unlock(r);
    start = clock_now(CLOCK_MONOTONIC);
    k = run_workers(r, MAX(descriptors / 2, 1U));
    if (k < 0 || (!r->options.wait && r->options.policy != POLICY_IDLE))
        return k;
    /* Memory was short, or somebody reclaims what is cold: the sweep takes seconds, and what it
     * brought in first may be gone. Nothing is read if not; at most for a tenth of the time. */
    lock(r);
    r->recheck_until = clock_now(CLOCK_MONOTONIC);
    r->recheck_until += (r->recheck_until - start) / 10;
    queues_fill(r);
    unlock(r);
    return run_workers(r, MAX(descriptors / 2, 1U));
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
    pthread_attr_init(&r->attributes);
    pthread_attr_setstacksize(&r->attributes, STACK_BYTES);
    if (pthread_create(&r->leader, &r->attributes, lead, r) != 0) {
        pthread_attr_destroy(&r->attributes);
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
    pthread_attr_destroy(&r->attributes);
    pthread_cond_destroy(&r->opened);
    pthread_mutex_destroy(&r->lock);
    free(r);
    return NULL;
}
