/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "device/measure.h"

#include "base/clock.h"
#include "device/block-device.h"
#include "device/profile.h"
#include "system/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long the caller waits for the end of a child that it has killed. */
#define REAP_MSEC 100

/* The child's message: a finished probe, or the error that ended the child. */
typedef struct Message {
    DeviceProbe probe;
    usec_t usec;
    int error;
    bool zeroed;
} Message;

_Static_assert(sizeof(Message) <= 4096, "a message must be atomic in a pipe");

typedef struct Reader {
    int fd;
    aio_context_t context;
    char *buffers; /* one for each request in flight */
} Reader;

static void *buffer_of(const Reader *x, const DeviceProbe *p, uint32_t slot)
{
    return x->buffers + (size_t)slot * p->length;
}

static int submit(Reader *x, const DeviceProbe *p, uint32_t i, uint32_t slot)
{
    struct iocb request =
                        {
                                .aio_data = slot,
                                .aio_lio_opcode = IOCB_CMD_PREAD,
                                .aio_fildes = (uint32_t)x->fd,
                                .aio_buf = (uint64_t)(uintptr_t)buffer_of(x, p, slot),
                                .aio_nbytes = p->length,
                                .aio_offset = (int64_t)p->offsets[i],
                        },
                *list = &request;

    return syscall(SYS_io_submit, x->context, 1L, &list) < 0 ? -errno : 0;
}

static bool is_zero(const char *buffer, size_t size)
{
    return buffer[0] == 0 && memcmp(buffer, buffer + 1, size - 1) == 0;
}

/* Keeps `depth` requests in flight until all are done. */
static int run_requests(Reader *x, const DeviceProbe *p, bool *ret_zeroed)
{
    uint32_t submitted = 0, done = 0;
    bool zeroed = true;
    int r = 0;

    while (r >= 0 && submitted < p->depth && submitted < p->requests) {
        r = submit(x, p, submitted, submitted);
        submitted++;
    }
    while (r >= 0 && done < p->requests) {
        struct io_event events[DEVICE_DEPTH_MAX];
        long n = syscall(SYS_io_getevents, x->context, 1L, (long)ELEMENTSOF(events), events, NULL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        for (long i = 0; r >= 0 && i < n; i++, done++) {
            uint32_t slot = (uint32_t)events[i].data;

            if (events[i].res != (int64_t)p->length)
                return events[i].res < 0 ? (int)events[i].res : -EIO;
            zeroed = zeroed && is_zero(buffer_of(x, p, slot), p->length);
            if (submitted < p->requests)
                r = submit(x, p, submitted++, slot);
        }
    }
    *ret_zeroed = zeroed;
    return r;
}

static int run_probe(Reader *x, const DeviceProbe *p, Message *ret)
{
    usec_t start;
    bool zeroed = false;
    int r;

    if (p->lead != UINT64_MAX) {
        ssize_t n = pread(x->fd, x->buffers, DEVICE_PROBE_BLOCK, (off_t)p->lead);

        if (n != DEVICE_PROBE_BLOCK)
            return n < 0 ? -errno : -EIO;
    }
    start = clock_now(CLOCK_MONOTONIC);
    r = run_requests(x, p, &zeroed);
    if (r >= 0)
        *ret = (Message){.probe = *p, .usec = clock_now(CLOCK_MONOTONIC) - start, .zeroed = zeroed};
    return r;
}

static int reader_open(uint64_t block_dev, Reader *ret)
{
    size_t size = DEVICE_PROBE_LENGTH_MAX;
    void *buffers;
    int flags, fd = block_device_open(block_dev);

    if (fd < 0)
        return fd;
    flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, (flags & ~O_NONBLOCK) | O_DIRECT) < 0)
        return -errno;
    if (posix_memalign(&buffers, DEVICE_PROBE_BLOCK, size) != 0)
        return -ENOMEM;
    /* The buffers are touched before the measurement, so that page faults do not count. */
    memset(buffers, 1, size);
    *ret = (Reader){.fd = fd, .buffers = buffers};
    return syscall(SYS_io_setup, DEVICE_DEPTH_MAX, &ret->context) < 0 ? -errno : 0;
}

static void send_message(int fd, const Message *m)
{
    /* If the caller is gone, SIGPIPE ends this process. */
    if (write(fd, m, sizeof(*m)) != (ssize_t)sizeof(*m))
        _exit(EXIT_FAILURE);
}

/* Runs in the child: takes the samples and sends them to the caller. The exit of the process ends
 * the asynchronous I/O. */
static _Noreturn void measure_and_send(uint64_t block_dev, DeviceProbeRun *z, int fd)
{
    Message m = {0};
    Reader x;
    int r;

    signal(SIGPIPE, SIG_DFL);
    /* If the disk hangs, this process outlives the caller. It must then hold neither the lock of
     * the state directory nor the caller's output. */
    if (fd > 0)
        (void)close_range(0, (unsigned)fd - 1, 0);
    (void)close_range((unsigned)fd + 1, UINT_MAX, 0);
    thread_set_io_class(IO_CLASS_IDLE);
    r = reader_open(block_dev, &x);
    while (r >= 0 && device_probe_next(z, &m.probe)) {
        usec_t start = clock_now(CLOCK_MONOTONIC), all;
        DeviceProbe p = m.probe;

        r = run_probe(&x, &p, &m);
        if (r < 0)
            break;
        all = clock_now(CLOCK_MONOTONIC) - start;
        send_message(fd, &m);
        device_probe_done(z, &m.probe, m.usec, m.zeroed);
        /* The budget also pays for lead reads and for the time between probes. */
        z->budget.usec -= MIN(all - MIN(m.usec, all), z->budget.usec);
    }
    if (r < 0) {
        m.error = r;
        send_message(fd, &m);
    }
    _exit(EXIT_SUCCESS);
}

/* Reads the child's messages until it ends or the time is up. */
static int receive(int fd, DeviceProbeRun *x, usec_t end)
{
    int n = 0, r = -ETIMEDOUT;

    for (;;) {
        usec_t now = clock_now(CLOCK_MONOTONIC);
        struct pollfd p = {.fd = fd, .events = POLLIN};
        Message m;

        if (now >= end)
            return n > 0 ? n : r;
        if (poll(&p, 1, (int)((end - now) / USEC_PER_MSEC) + 1) < 0 && errno != EINTR)
            return n > 0 ? n : -errno;
        if (p.revents == 0)
            continue;
        if (read(fd, &m, sizeof(m)) != (ssize_t)sizeof(m))
            return n > 0 || r == -ETIMEDOUT ? n : r;
        if (m.error < 0)
            r = m.error;
        else {
            device_probe_done(x, &m.probe, m.usec, m.zeroed);
            n++;
        }
    }
}

/* Kills the child, and waits briefly for it. A process in an uninterruptible read does not end. */
static void end_child(pid_t child)
{
    usec_t end = clock_now(CLOCK_MONOTONIC) + REAP_MSEC * USEC_PER_MSEC;

    (void)kill(child, SIGKILL);
    while (waitpid(child, NULL, WNOHANG) == 0 && clock_now(CLOCK_MONOTONIC) < end)
        usleep(USEC_PER_MSEC);
}

int device_measure(uint64_t block_dev, DeviceProbeRun *x)
{
    usec_t start = clock_now(CLOCK_MONOTONIC), limit = x->budget.usec, spent;
    int fds[2], n;
    pid_t child;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    child = fork();
    if (child == 0)
        measure_and_send(block_dev, x, fds[1]);
    n = -errno;
    close(fds[1]);
    if (child > 0) {
        n = receive(fds[0], x, start + limit + DEVICE_MEASURE_HANG_MAX);
        end_child(child);
    }
    close(fds[0]);
    spent = clock_now(CLOCK_MONOTONIC) - start;
    x->budget.usec = limit - MIN(spent, limit);
    return n;
}
