/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Starts threads, sets their I/O priority, and waits for their end only for a limited time, because
 * a dead disk can block a thread forever. */

#include "base/macros.h"
#include "base/time-util.h"

#include <pthread.h>

/* The numbers of ioprio_set(2). */
typedef enum IoClass {
    IO_CLASS_REALTIME = 1, /* only benchmarks; needs CAP_SYS_ADMIN or CAP_SYS_NICE */
    IO_CLASS_BEST_EFFORT = 2,
    IO_CLASS_IDLE = 3,
} IoClass;

/* Starts a thread that executes run(arg) on a stack of that size. Returns 0, or the
 * negative errno of the pthread function that failed. */
int thread_start(pthread_t *ret, size_t stack_bytes, void *(*run)(void *arg), void *arg);

/* Waits at most `timeout` for the end of the thread. Returns true if it has ended. Returns false if
 * the thread still runs. It is then detached, and the memory that it uses must stay valid. */
bool thread_join(pthread_t thread, usec_t timeout);

/* Like thread_join(), but if it returns false, the thread can still be joined. */
bool thread_try_join(pthread_t thread, usec_t timeout);

/* Sets the I/O priority of the calling thread: the class, at the kernel's default level. Does
 * nothing if the thread has this priority. If the kernel refuses it, the thread keeps its
 * priority. */
void thread_set_io_class(IoClass class);
