/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The executor: a leader thread finds the filesystems and builds the list of operations. Then
 * workers carry out its streams, in a replay next to an application one leg after the other.
 *
 * executor-internal.h names the threads and has the lock map. */

#include "execute/executor-internal.h"

#include "base/clock.h"
#include "execute/marker.h"
#include "execute/sample.h"
#include "execute/subtract.h"

#include <limits.h>
#include <signal.h>

#define DESCRIPTORS_OWN 24U /* open besides the files of the pack */

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

static bool is_of_leg(const Operation *o, Leg leg)
{
    return leg == LEG_METADATA ? o->kind == OPERATION_METADATA
           : leg == LEG_FILES  ? o->kind == OPERATION_ITEM || o->kind == OPERATION_OPEN
                               : o->kind == OPERATION_DATA;
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
        while (i < n && is_of_leg(&o[i], leg))
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
 * - items, and files of filesystems whose metadata only items and opens read (xfs): several workers
 *   ask for them and open them;
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
    pthread_cond_init(&x->ended, NULL);
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
    pthread_cond_destroy(&x->ended);
    pthread_mutex_destroy(&x->lock);
    free(x);
    return NULL;
}
