/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/state-write.h"

#include "base/clock.h"
#include "system/thread.h"

/* libjson-c and zlib keep their buffers on the heap. */
#define STACK_BYTES (1024U * 1024)

/* Guards `ended` and `left` of every write, and the next number. Never held during I/O. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned n_left; /* threads that were left behind and still hang */

static void *work(void *arg)
{
    StateWrite *w = arg;
    bool left;

    w->run(w);
    pthread_mutex_lock(&lock);
    w->ended = true;
    left = w->left;
    n_left -= left;
    pthread_mutex_unlock(&lock);
    if (left)
        w->free(w);
    return NULL;
}

bool state_write_disk_hangs(void)
{
    bool hangs;

    pthread_mutex_lock(&lock);
    hangs = n_left > 0;
    pthread_mutex_unlock(&lock);
    return hangs;
}

int state_write_start(StateWrite *w)
{
    w->ended = w->left = false;
    return state_write_disk_hangs() ? -ETIMEDOUT : thread_start(&w->thread, STACK_BYTES, work, w);
}

bool state_write_has_ended(const StateWrite *w)
{
    bool ended;

    pthread_mutex_lock(&lock);
    ended = w->ended;
    pthread_mutex_unlock(&lock);
    return ended;
}

/* Gives the write up, unless it has ended. Returns true if it was given up. */
static bool leave(StateWrite *w)
{
    bool left;

    pthread_mutex_lock(&lock);
    left = w->left = !w->ended;
    n_left += left;
    if (left)
        pthread_detach(w->thread);
    pthread_mutex_unlock(&lock);
    return left;
}

int state_write_finish(StateWrite *w, Recorder *recorder)
{
    usec_t deadline =
            clock_now(CLOCK_MONOTONIC) + (state_write_disk_hangs() ? 0 : STATE_WRITE_USEC);

    while (!thread_try_join(w->thread, RECORDER_DRAIN_USEC)) {
        if (recorder)
            (void)recorder_drain(recorder);
        if (clock_now(CLOCK_MONOTONIC) >= deadline && leave(w))
            return -ETIMEDOUT;
    }
    return 0;
}
