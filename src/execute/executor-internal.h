/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the executor share: executor.c has the leader, the legs and the calls of
 * executor.h, executor-workers.c the workers, executor-open.c and executor-read.c what a worker
 * does for one operation.
 *
 * Threads: the caller of replay_start() (it never waits for the disk), the leader, and the threads
 * of the workers. A worker has one thread at a time, and may have several one after the other.
 *
 * Lock map. There is one mutex, Replay.lock. It is held for short updates, never during I/O.
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
 *   appended_bytes              workers, with lock             workers, with lock
 *   listed, hurried, order,     leader or caller, with lock    everyone, with lock
 *   stopped, done, error,
 *   result
 *   recheck_until, leg, drains  the leader, with lock, while   workers, without the lock: their
 *                               no worker runs                 threads start after the change
 *   needs[]                     workers, each its own data;    the leader, while no worker runs
 *                               no lock
 *   io_class, beside (atomic)   any caller                     workers, before each operation
 *   Worker.started              the leader                     the leader
 *   Worker.ended, .continues    the worker, with lock, and     the leader, with lock, or after it
 *                               the leader before it starts    has joined the thread
 *                               a thread
 *
 *   The condition `opened` is signalled when queues[].busy_opens becomes 0 (data waits for it), and
 *   when no metadata is left to begin (Worker.opens_only waits for it). The condition `ended` is
 *   signalled when the thread of a worker ends. The other fields of a Worker, its ring and its
 *   scratch buffer belong to its present thread. */

#include "execute/executor.h"

#include "execute/opening.h"
#include "execute/pacer.h"

#include <pthread.h>
#include <stdatomic.h>

#define SCRATCH_BYTES (128U * 1024)

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
    unsigned busy_opens; /* items and opens under way; data waits until there are none */
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
    LEG_FILES,
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
    pthread_cond_t ended; /* a thread of a worker has ended */
    File *files;          /* one per file of the pack */
    StreamQueue *queues;  /* one per stream */
    bool listed;          /* the list and the queues can be used */
    bool stopped;         /* replay_stop() was called */
    bool hurried;         /* replay_hurry() was called: `order` counts */
    ReplayOrder order;
    usec_t recheck_until; /* end of the recheck, which reads reclaimed pages again; 0: the sweep is
                             not over */
    Leg leg;              /* how the workers carry out their operations */
    bool drains;          /* the workers wait for what is in flight: another leg follows */
    Need *needs;          /* data -> what the survey has found; NULL: no survey */
    bool done;
    int error;
    uint32_t n_open, keep_open;
    uint64_t appended_bytes; /* of all files so far: OPERATION_APPENDED_ALL_MAX */
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
    IoClass io_class;
    bool sweeps;     /* the operations are in the order of place, or of need and place, or many
                        of those that follow are (operations_sweep()) */
    bool alone;      /* no other worker takes operations of the stream */
    bool opens_only; /* Stream.n_openers */
    bool started;    /* a thread carries out its operations */
    bool ended;      /* this thread has ended, and was not joined */
    bool continues;  /* another thread is to continue */
    uint64_t thread_bytes; /* requested by the present thread */
    bool failed;           /* a chunk could not be read */
} Worker;

static inline void lock(Replay *x)
{
    pthread_mutex_lock(&x->lock);
}

static inline void unlock(Replay *x)
{
    pthread_mutex_unlock(&x->lock);
}

#define STACK_BYTES (256U * 1024) /* of a thread */

/* Runs at most `most` workers of each stream until no operation of the leg is left. Together they
 * have at most `descriptors` open. Returns 0, or -ENOMEM. */
int run_workers(Replay *x, uint32_t descriptors, unsigned most);

/* Waits for the oldest chunk in flight by reading from it. The read returns when its pages are in
 * the page cache. It also reads pages that were reclaimed or that the kernel did not read ahead. To
 * limit the window, it suffices to read the last byte. If that was in memory before, the rest may
 * still be in flight. Therefore the whole chunk is read where a sweep begins after it. With `wait`
 * the whole chunk is read, too, and becomes resident. */
void await_oldest(Worker *w);

/* Asks the filesystem for the item of an OPERATION_ITEM, and counts the result. */
void execute_item(Worker *w, const Operation *op);

/* Opens the file of an OPERATION_OPEN, and counts the result. */
void execute_open(Worker *w, const Operation *op);

/* Returns a descriptor for reading the file's data, or a negative errno. Opens the file if that was
 * not tried yet. Each call that succeeds is paired with one call of release_file(). */
int acquire_file(Worker *w, const Operation *op, uint32_t index);
void release_file(Replay *x, uint32_t index);

/* Opens the file of the data, and finds out how much of the data is in memory: Replay.needs. */
void survey_range(Worker *w, const Operation *op);

/* Requests a range of metadata or data, and counts it. */
void execute_range(Worker *w, const Operation *op);

/* Reads ranges of several files that follow one another on the device as one request. Of its files,
 * the last one that is not in memory stays in flight, because its data arrive last. If the request
 * fails, or if replay waits for each range (`wait`), the ranges are read one by one. */
void execute_run(Worker *w, const Operation *operations, size_t n);
