/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "system/disk-call.h"

#include "base/clock.h"
#include "base/macros.h"
#include "system/thread.h"

#define STACK_BYTES (256U * 1024)
#define UNUSED_USEC (60 * USEC_PER_SEC)

/* One filesystem and its thread. */
typedef struct Place {
    uint64_t dev; /* 0: the place is free */
    DiskJob *job; /* the thread executes it, or will */
    bool done;    /* the job has ended, and its caller may take it */
    bool left;    /* its caller has given up: the thread frees the job */
    unsigned n_hangs;
    usec_t used;            /* when the last call began (CLOCK_MONOTONIC) */
    pthread_cond_t to_do;   /* there is a job */
    pthread_cond_t changed; /* a job has ended, or its caller has taken it */
} Place;

/* The threads have no owner and live until the process ends, like the threads that hang. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Place places[DISK_CALL_MAX];
static size_t n_places;

static void *work(void *arg)
{
    Place *p = arg;

    pthread_mutex_lock(&lock);
    for (;;) {
        DiskJob *job;

        while (!p->job || p->done)
            pthread_cond_wait(&p->to_do, &lock);
        job = p->job;
        pthread_mutex_unlock(&lock);
        job->run(job);
        pthread_mutex_lock(&lock);
        if (p->left) {
            p->left = false;
            p->job = NULL;
            pthread_mutex_unlock(&lock);
            job->free(job);
            pthread_mutex_lock(&lock);
        } else
            p->done = true;
        pthread_cond_broadcast(&p->changed);
    }
    return NULL;
}

/* Makes a place with a thread. Call it with the lock. */
static Place *add_place(void)
{
    Place *p = &places[n_places];
    pthread_condattr_t clock;
    pthread_t thread;

    if (n_places == DISK_CALL_MAX)
        return NULL;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC); /* the date may jump */
    pthread_cond_init(&p->to_do, NULL);
    pthread_cond_init(&p->changed, &clock);
    pthread_condattr_destroy(&clock);
    if (thread_start(&thread, STACK_BYTES, work, p) < 0) {
        pthread_cond_destroy(&p->to_do);
        pthread_cond_destroy(&p->changed);
        return NULL;
    }
    pthread_detach(thread);
    n_places++;
    return p;
}

static Place *find(uint64_t dev)
{
    for (size_t i = 0; i < n_places; i++)
        if (places[i].dev == dev)
            return &places[i];
    return NULL;
}

/* Returns the place without a job that was not used for the longest time; places that have hung
 * only if there is no other. Call it with the lock. */
static Place *oldest_place(void)
{
    Place *best = NULL;

    for (size_t i = 0; i < n_places; i++) {
        Place *p = &places[i];

        if (!p->job && (!best || !p->n_hangs > !best->n_hangs ||
                        (!p->n_hangs == !best->n_hangs && p->used < best->used)))
            best = p;
    }
    return best;
}

/* Finds or makes the place of the filesystem. Call it with the lock. */
static Place *place_of(uint64_t dev)
{
    usec_t now = clock_now(CLOCK_MONOTONIC);
    Place *p = find(dev);

    if (!p)
        p = add_place();
    if (!p)
        p = oldest_place();
    if (!p)
        return NULL;
    if (p->dev != dev || now >= p->used + UNUSED_USEC)
        p->n_hangs = 0;
    p->dev = dev;
    p->used = now;
    return p;
}

/* Waits until ready(p), or until the deadline (CLOCK_MONOTONIC). Returns ready(p). Call it with the
 * lock. */
static bool wait_for(Place *p, const struct timespec *deadline, bool (*ready)(const Place *p))
{
    while (!ready(p))
        if (pthread_cond_timedwait(&p->changed, &lock, deadline) == ETIMEDOUT)
            return ready(p);
    return true;
}

static bool is_free(const Place *p)
{
    return !p->job;
}

static bool is_done(const Place *p)
{
    return p->done;
}

/* Call it with the lock. */
static int call(uint64_t dev, DiskJob *job)
{
    usec_t limit = job->limit > 0 ? job->limit : DISK_CALL_USEC;
    struct timespec deadline = timespec_of(clock_now(CLOCK_MONOTONIC) + limit);
    Place *p = place_of(dev);

    if (!p)
        return -EAGAIN;
    /* Another thread's call is waited for, but not a call that was given up. */
    if (p->left || p->n_hangs >= DISK_CALL_HANGS_MAX || !wait_for(p, &deadline, is_free))
        return -ETIMEDOUT;
    p->job = job;
    pthread_cond_signal(&p->to_do);
    if (!wait_for(p, &deadline, is_done)) {
        p->left = true;
        p->n_hangs++;
        return -EINPROGRESS;
    }
    p->job = NULL;
    p->done = false;
    pthread_cond_broadcast(&p->changed);
    return 0;
}

int disk_call(uint64_t dev, DiskJob *job)
{
    int r;

    if (dev == 0) {
        job->run(job);
        return 0;
    }
    pthread_mutex_lock(&lock);
    r = call(dev, job);
    pthread_mutex_unlock(&lock);
    if (r == -EINPROGRESS)
        return -ETIMEDOUT;
    if (r < 0)
        job->free(job);
    return r;
}

bool disk_call_hangs(uint64_t dev)
{
    const Place *p;
    bool hangs;

    pthread_mutex_lock(&lock);
    p = dev != 0 ? find(dev) : NULL;
    hangs = p && p->left;
    pthread_mutex_unlock(&lock);
    return hangs;
}
