/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The executor: a leader thread finds the filesystems and builds the list of operations; then it
 * and further workers carry out the streams. A worker asks the kernel to read a chunk, stores the
 * chunk in the worker's ring, and continues with the next one as long as its pacer allows. To make
 * room it waits for the oldest chunk by reading from it, because POSIX_FADV_WILLNEED does not
 * report when data has arrived.
 *
 * executor-internal.h names the threads and has the lock map. Over 500 lines: the workers, the
 * legs, the leader and the callers share one mutex, and their functions are checked against it
 * together. */

#include "execute/executor-internal.h"

#include "base/clock.h"
#include "execute/marker.h"
#include "execute/sample.h"
#include "execute/subtract.h"
#include "system/cachestat.h"

#include <limits.h>
#include <signal.h>

#define STACK_BYTES     (256U * 1024)
#define DESCRIPTORS_OWN 24U /* open besides the files of the pack */

/* The most requests in flight in a sweep next to an application that starts: a disk has a queue of
 * this length. */
#define REQUESTS_BESIDE 32U

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

/* Returns true if one request may read several ranges. A recheck, a survey and `wait` examine each
 * range alone. */
static bool takes_runs(const Replay *x)
{
    return !x->recheck_until && !x->options.wait && (x->leg == LEG_NONE || x->leg == LEG_DATA);
}

/* Returns true if the next operation of the leg is of that kind. Called with the lock held. */
static bool is_next(const Replay *x, const StreamQueue *q, OperationKind kind)
{
    return q->next < q->leg && x->list.operations[q->next].kind == kind;
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
    while (w->opens_only && is_next(x, q, OPERATION_METADATA))
        pthread_cond_wait(&x->opened, &x->lock);
    if (w->opens_only && !is_next(x, q, OPERATION_OPEN)) {
        unlock(x);
        return 0;
    }
    while (is_next(x, q, OPERATION_DATA) && q->busy_opens > 0)
        pthread_cond_wait(&x->opened, &x->lock);
    if (q->next < q->leg) {
        const Operation *first = &x->list.operations[q->next];

        n = takes_runs(x) ? operations_run(x->pack, first, MIN(q->leg - q->next, w->run_max),
                                           x->mounted.volumes[first->volume].chunk_bytes,
                                           x->leg == LEG_DATA ? OPERATION_GAP_BESIDE : 0)
                          : 1;
        n = x->leg == LEG_DATA ? cut_run(x, first, n) : n;
        memcpy(ret, first, n * sizeof(Operation));
        q->next += n;
        w->sweeps = !x->hurried || x->order != REPLAY_ORDER_LIKELY;
        q->busy_opens += ret->kind == OPERATION_OPEN && !x->recheck_until;
        note_reading(x, ret, n);
        if (ret->kind == OPERATION_METADATA && !is_next(x, q, OPERATION_METADATA))
            pthread_cond_broadcast(&x->opened);
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

/* Returns the number of further workers that only open files. Each has the descriptors of a path
 * and of a file open. A recheck opens nothing. */
static unsigned openers_of(const Replay *x, const Stream *s, uint32_t descriptors, unsigned most)
{
    return most == 1 || s->n == 0 || x->recheck_until ? 0 : MIN(s->n_openers, descriptors / 8);
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

/* Runs at most `most` workers of each stream until no operation of the leg is left.
 *
 * The leader is worker 0, except in a leg of data: that leg gets a new thread. With its default
 * low_latency, the I/O scheduler bfq gives a thread that begins to read 30 times its weight, until
 * the thread has read 60 MB (Linux, block/bfq-iosched.c, max_service_from_wr). The threads of an
 * application that starts have this weight. One thread for all legs would lose it in a large set,
 * and would then wait for the application instead of staying ahead of it. */
static int run_workers(Replay *x, uint32_t descriptors, unsigned most)
{
    size_t n = 0, n_queues = x->list.n_streams, at = 0, first = x->leg == LEG_DATA ? 0 : 1;
    uint32_t of_openers = 0, of_worker;
    Worker *workers;
    bool failed = false;
    int r = 0;

    for (size_t i = 0; i < n_queues; i++) {
        n += MIN(workers_of(&x->list.streams[i], descriptors), most);
        of_openers += 2 * openers_of(x, &x->list.streams[i], descriptors, most);
    }
    of_worker = (descriptors - MIN(descriptors / 2, of_openers)) / MAX((uint32_t)n, 1U);
    n += of_openers / 2;
    workers = calloc(n + 1, sizeof(Worker));
    if (!workers)
        return -ENOMEM;
    for (size_t i = 0; i < n_queues; i++) {
        const Stream *s = &x->list.streams[i];
        unsigned of_queue = MIN(workers_of(s, descriptors), most);
        unsigned all = of_queue + openers_of(x, s, descriptors, most);

        for (unsigned j = 0; j < all && r >= 0; j++) {
            Worker *w = &workers[at++];

            w->replay = x;
            w->stream_queue = &x->queues[i];
            w->opens_only = j >= of_queue;
            r = worker_prepare(w, of_queue, of_worker);
        }
    }
    /* The leader also does the work of threads that cannot be started. */
    for (size_t i = first; i < n && r >= 0; i++)
        workers[i].started = thread_start(&workers[i].thread, STACK_BYTES, work, &workers[i]) >= 0;
    for (size_t i = 0; i < n && r >= 0; i++)
        if (!workers[i].started)
            work(&workers[i]);
    for (size_t i = 0; i < n; i++)
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
    pthread_cond_broadcast(&x->opened);
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

static OperationKind kind_of_leg(Leg leg)
{
    return leg == LEG_METADATA ? OPERATION_METADATA
           : leg == LEG_FILES  ? OPERATION_OPEN
                               : OPERATION_DATA;
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
        while (i < n && o[i].kind == kind_of_leg(leg))
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
static bool begin_leg(Replay *x, Leg leg)
{
    StreamQueue *q = &x->queues[0];
    bool any;

    lock(x);
    if (leg == LEG_DATA && x->leg == LEG_SURVEY && !x->stopped)
        drop_left_out(x, q);
    x->leg = leg;
    q->leg = find_end(x, q, leg);
    any = q->next < q->leg;
    q->surveyed = q->next;
    x->drains = leg == LEG_DATA && q->leg < q->end;
    unlock(x);
    return any;
}

/* Reads next to an application that starts, one leg after the other:
 *
 * - the executable, for which the application waits first;
 * - metadata, which the opens need;
 * - files of filesystems whose metadata only opens read (xfs): several workers open them;
 * - a survey: several workers open the files and find out which data are missing, so that an open
 *   that waits for the disk delays no other;
 * - the data of each bin of first use: one worker sweeps upwards over what is missing, and joins
 *   neighbours;
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
            {LEG_EXECUTABLE, 1},    {LEG_METADATA, 1}, {LEG_FILES, UINT_MAX},
            {LEG_SURVEY, UINT_MAX}, {LEG_DATA, 1},     {LEG_OPENS, UINT_MAX},
    };
    int r = 0;

    x->needs = calloc((size_t)le32toh(x->pack->header->n_data) + 1, sizeof(Need));
    if (!x->needs)
        return -ENOMEM;
    for (size_t i = 0; i < ELEMENTSOF(legs); i++)
        while (r >= 0 && begin_leg(x, legs[i].leg)) {
            r = run_workers(x, descriptors, legs[i].workers);
            if (legs[i].leg != LEG_DATA)
                break;
        }
    return r;
}

static int run(Replay *x)
{
    uint64_t n_files = le32toh(x->pack->header->n_files);
    uint32_t of_replays = MAX(x->options.of_replays, 1U), descriptors;
    usec_t start;
    int r = find_operations(x);

    if (r < 0 || x->list.n == 0)
        return r;
    descriptors = descriptors_raise(DESCRIPTORS_OWN + 2ULL * x->mounted.n * of_replays,
                                    (n_files * 2 + 1024) * of_replays) /
                  of_replays;
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
