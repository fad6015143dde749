/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/stop-limit.h"

#include "base/log.h"
#include "system/capability.h"
#include "system/thread.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

/* TimeoutStopSec=10s is longer, which leaves time for the end of the process. */
#define STOP_USEC (8 * USEC_PER_SEC)

#define STACK_BYTES (64U * 1024)

static void *end_later(void *arg _unused_)
{
    struct timespec left = timespec_of(STOP_USEC);

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        continue;
    log_error("headstartd: a disk does not answer: ending without the recording of this stage");
    _exit(EXIT_FAILURE);
}

/* The signal stays pending, so that the main thread can still take it. */
static void *watch(void *arg)
{
    struct pollfd p = {.fd = (int)(intptr_t)arg, .events = POLLIN};

    /* This thread starts before the recorder, which drops the capability only for its own thread.
     */
    (void)capability_drop(CAP_NET_ADMIN);
    while (poll(&p, 1, -1) <= 0)
        continue;
    return end_later(NULL);
}

static int start(void *(*run)(void *arg), void *arg)
{
    pthread_t thread;
    int r = thread_start(&thread, STACK_BYTES, run, arg);

    if (r >= 0)
        pthread_detach(thread);
    return r;
}

int stop_limit_watch(void)
{
    _cleanup_close_ int fd = -EBADF;
    sigset_t stop;
    int r;

    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    fd = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return -errno;
    r = start(watch, (void *)(intptr_t)fd);
    if (r >= 0)
        (void)TAKE_FD(fd); /* the thread uses it until the process ends */
    return r;
}

void stop_limit_begin(void)
{
    int r = start(end_later, NULL);

    if (r < 0)
        log_debug_errno(r, "Cannot start a thread, ignoring: %m");
}
