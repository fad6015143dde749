/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "volume/seeks.h"

#include "base/clock.h"
#include "volume/block-device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define BLOCK 4096U

static int order(const void *a, const void *b)
{
    const usec_t x = *(const usec_t *)a, y = *(const usec_t *)b;

    return x < y ? -1 : x > y;
}

static usec_t lower_quartile(usec_t *times, size_t n)
{
    qsort(times, n, sizeof(*times), order);
    return times[n / 4];
}

static int read_one(int fd, void *buf, uint64_t offset, usec_t *ret)
{
    usec_t start = clock_now(CLOCK_MONOTONIC);
    ssize_t n = pread(fd, buf, BLOCK, (off_t)offset);

    if (n < 0)
        return -errno;
    if (n != BLOCK)
        return -EIO;
    *ret = clock_now(CLOCK_MONOTONIC) - start;
    return 0;
}

int seeks_measure(const Volume *v, SeekTimes *ret)
{
    usec_t elsewhere[SEEKS_MAX], next[SEEKS_MAX], start = clock_now(CLOCK_MONOTONIC);
    uint64_t blocks = v->size_bytes / BLOCK, places[SEEKS_MAX];
    _cleanup_close_ int fd = block_device_open(v->block_dev);
    _cleanup_free_ void *buf = NULL;
    unsigned n = 0;
    int flags;

    if (fd < 0)
        return fd;
    if (blocks < 2)
        return -ENXIO;
    flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, (flags & ~O_NONBLOCK) | O_DIRECT) < 0)
        return -errno;
    if (getrandom(places, sizeof(places), GRND_NONBLOCK) != (ssize_t)sizeof(places))
        return -errno;
    if (posix_memalign(&buf, BLOCK, BLOCK) != 0)
        return -ENOMEM;
    while (n < SEEKS_MAX && clock_now(CLOCK_MONOTONIC) - start < SEEKS_TIME_MAX) {
        uint64_t offset = places[n] % (blocks - 1) * BLOCK;
        int r = read_one(fd, buf, offset, &elsewhere[n]);

        if (r >= 0)
            r = read_one(fd, buf, offset + BLOCK, &next[n]);
        if (r < 0)
            return r;
        n++;
    }
    if (n == 0)
        return -EAGAIN;
    *ret = (SeekTimes){
            .elsewhere = lower_quartile(elsewhere, n),
            .next = lower_quartile(next, n),
            .n = n,
    };
    return 0;
}
