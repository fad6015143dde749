/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Writes to the state directory in another thread. fsync(2) takes long on a busy disk, and never
 * ends on a disk that does not answer. The main thread reads the event queue while it waits, since
 * the queue has no bound, and waits for a limited time. A thread that hangs is left behind with its
 * argument. While it hangs, further writes fail at once. */

#include "record/recorder.h"

#include <pthread.h>

/* How long the main thread waits for the end of a write. A disk that is only slow needs less. */
#define STATE_WRITE_USEC (20 * USEC_PER_SEC)

/* Describes a write. The argument begins with this, and owns everything that it uses. */
typedef struct StateWrite {
    void (*run)(struct StateWrite *w);  /* writes; called in another thread */
    void (*free)(struct StateWrite *w); /* frees the argument */
    /* For state-write.c only. */
    pthread_t thread;
    bool ended, left;
} StateWrite;

/* Returns true if a thread that was left behind still hangs. Nothing in the state directory should
 * be opened then, because that would hang, too. */
bool state_write_disk_hangs(void);

/* Starts the thread. Returns 0; -ETIMEDOUT if a thread that was left behind still hangs; or another
 * negative errno. On failure nothing is written. The caller still owns the argument in each case.
 */
int state_write_start(StateWrite *w);

/* Returns true if the write has ended, so that state_write_finish() does not wait. */
bool state_write_has_ended(const StateWrite *w);

/* Waits for the end of a write that was started, at most STATE_WRITE_USEC, and reads the event
 * queue of the recorder meanwhile. `recorder` may be NULL if the write has ended: the thread exits
 * soon. Returns 0, and the caller still owns the argument; or
 * -ETIMEDOUT: the thread is left behind, and frees the argument if the write ever ends. */
int state_write_finish(StateWrite *w, Recorder *recorder);
