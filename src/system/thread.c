/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "system/thread.h"

#include "base/clock.h"

#include <sys/syscall.h>
#include <unistd.h>

/* linux/ioprio.h has these since Linux 5.15. */
#define IOPRIO_CLASS_SHIFT 13
#define IOPRIO_LEVEL       4U /* of best-effort: the kernel's default */
#define IOPRIO_WHO_PROCESS 1

#ifdef __SANITIZE_THREAD__
/* The ThreadSanitizer of gcc 12 does not know pthread_clockjoin_np(3): it would report a race with
 * each thread that was joined. */
#define CLOCK_OF_JOIN                CLOCK_REALTIME
#define join_until(thread, deadline) pthread_timedjoin_np(thread, NULL, deadline)
#else
#define CLOCK_OF_JOIN                CLOCK_MONOTONIC
#define join_until(thread, deadline) pthread_clockjoin_np(thread, NULL, CLOCK_OF_JOIN, deadline)
#endif

int thread_start(pthread_t *ret, size_t stack_bytes, void *(*run)(void *arg), void *arg)
{
    pthread_attr_t attributes;
    int r = pthread_attr_init(&attributes);

    if (r != 0)
        return -r;
    r = pthread_attr_setstacksize(&attributes, stack_bytes);
    if (r == 0)
        r = pthread_create(ret, &attributes, run, arg);
    pthread_attr_destroy(&attributes);
    return -r;
}

bool thread_try_join(pthread_t thread, usec_t timeout)
{
    struct timespec deadline = timespec_of(timeout), now = {0};

    /* The wait ends by the clock of the kernel, so the time must not come from a test. */
    (void)clock_gettime(CLOCK_OF_JOIN, &now);
    deadline.tv_sec += now.tv_sec + (deadline.tv_nsec + now.tv_nsec) / NSEC_PER_SEC;
    deadline.tv_nsec = (deadline.tv_nsec + now.tv_nsec) % NSEC_PER_SEC;

    return join_until(thread, &deadline) == 0;
}

bool thread_join(pthread_t thread, usec_t timeout)
{
    if (thread_try_join(thread, timeout))
        return true;
    pthread_detach(thread);
    return false;
}

void thread_set_io_class(IoClass class)
{
    const long wanted =
            (long)class << IOPRIO_CLASS_SHIFT | (class == IO_CLASS_IDLE ? 0 : IOPRIO_LEVEL);
    long now = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);

    /* Units that set the priority do not allow ioprio_set(2). The class idle has no levels. */
    if (now == wanted || (class == IO_CLASS_IDLE && now >> IOPRIO_CLASS_SHIFT == IO_CLASS_IDLE))
        return;
    (void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, wanted);
}
