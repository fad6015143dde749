/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The workers of the executor. A worker asks the kernel to read a chunk, stores the chunk in the
 * worker's ring, and continues with the next one as long as its pacer allows. To make room it waits
 * for the oldest chunk by reading from it, because POSIX_FADV_WILLNEED does not report when data
 * has arrived. The lock map of executor-internal.h holds here, too. */

#include "execute/executor-internal.h"

#include "base/clock.h"

/* A worker continues in a new thread after the operation with which its thread has requested this
 * many bytes. With its default low_latency, the I/O scheduler bfq gives a thread that begins to
 * read 30 times its weight, until the thread has read 60 MB (Linux, block/bfq-iosched.c,
 * max_service_from_wr). The threads of an application or a session that starts have this weight. A
 * thread without it would wait for their reads instead of staying ahead of them. */
#define BYTES_OF_THREAD (48ULL << 20)

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

/* Returns true if a worker waits for the disk while it carries out an operation of that kind. */
static bool is_waiting(OperationKind k)
{
    return k == OPERATION_ITEM || k == OPERATION_OPEN;
}

/* Returns true if the next operation of the leg is one for the openers, too. Called with the lock
 * held. */
static bool is_next_waiting(const Replay *x, const StreamQueue *q)
{
    return q->next < q->leg && is_waiting(x->list.operations[q->next].kind);
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
    if (w->opens_only && !is_next_waiting(x, q)) {
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
        w->sweeps = !x->hurried || x->order != REPLAY_ORDER_LIKELY ||
                    operations_sweep(x->pack, x->mounted.facts, first, q->leg - (q->next - n));
        q->busy_opens += is_waiting(ret->kind) && !x->recheck_until;
        note_reading(x, ret, n);
        if (ret->kind == OPERATION_METADATA && !is_next(x, q, OPERATION_METADATA))
            pthread_cond_broadcast(&x->opened);
    }
    unlock(x);
    return n;
}

/* Carries out operations until none is left, or until another thread is to continue. Returns true
 * in the latter case. */
static bool carry_out(Worker *w)
{
    Replay *x = w->replay;
    Operation operations[OPERATION_RUN_MAX];
    size_t n;

    w->thread_bytes = 0;
    while (w->thread_bytes < BYTES_OF_THREAD && (n = next_operations(w, operations)) > 0) {
        follow_io_class(w);
        follow_readers(w);
        if (n > 1)
            execute_run(w, operations, n);
        else if (x->leg == LEG_SURVEY)
            survey_range(w, &operations[0]);
        else if (!is_waiting(operations[0].kind))
            execute_range(w, &operations[0]);
        else if (!x->recheck_until)
            (operations[0].kind == OPERATION_ITEM ? execute_item : execute_open)(w, operations);
    }
    if (w->thread_bytes >= BYTES_OF_THREAD)
        return true;
    while ((x->options.wait || x->drains) && w->pacer.in_flight_requests > 0)
        await_oldest(w);
    return false;
}

static void *work(void *arg)
{
    Worker *w = arg;
    bool continues = carry_out(w);

    lock(w->replay);
    w->continues = continues;
    w->ended = true;
    pthread_cond_signal(&w->replay->ended);
    unlock(w->replay);
    return NULL;
}

/* Starts a thread for the worker. Returns false if that fails. */
static bool start_thread(Worker *w)
{
    w->ended = false;
    w->io_class = 0; /* a new thread has the priority of the leader */
    return thread_start(&w->thread, STACK_BYTES, work, w) >= 0;
}

/* Returns a worker whose thread has ended and was not joined, or NULL. Called with the lock held.
 */
static Worker *find_ended(Worker *workers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (workers[i].started && workers[i].ended)
            return &workers[i];
    return NULL;
}

/* Runs the workers, each in its own threads. The leader does the work of a thread that cannot be
 * started. */
static void run_threads(Replay *x, Worker *workers, size_t n)
{
    size_t n_running = 0;

    for (size_t i = 0; i < n; i++) {
        workers[i].started = start_thread(&workers[i]);
        n_running += workers[i].started;
    }
    for (size_t i = 0; i < n; i++)
        while (!workers[i].started && carry_out(&workers[i]))
            ;
    lock(x);
    while (n_running > 0) {
        Worker *w = find_ended(workers, n);

        if (!w) {
            pthread_cond_wait(&x->ended, &x->lock);
            continue;
        }
        unlock(x);
        pthread_join(w->thread, NULL);
        w->started = w->continues && start_thread(w);
        n_running -= !w->started;
        while (!w->started && w->continues)
            w->continues = carry_out(w);
        lock(x);
    }
    unlock(x);
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

int run_workers(Replay *x, uint32_t descriptors, unsigned most)
{
    size_t n = 0, n_queues = x->list.n_streams, at = 0;
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
    if (r >= 0)
        run_threads(x, workers, n);
    for (size_t i = 0; i < n; i++)
        failed = failed || workers[i].failed;
    lock(x);
    x->result.resident = x->options.wait && r >= 0 && !failed && !x->stopped;
    unlock(x);
    workers_free(workers, n);
    return r;
}
