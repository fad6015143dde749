/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "replay/mount-watch.h"

#include "base/clock.h"
#include "base/hash.h"
#include "volume/mount-table.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Computes a hash over the mounts that may hold files of a pack: the id, the filesystem and the
 * mount point of each mount. The id alone does not suffice, because the kernel reuses ids. */
static int fingerprint(const char *root, uint64_t *ret)
{
    _cleanup_mount_table_ MountTable t = {0};
    uint64_t hash = 0;
    int r = mount_table_read(AT_FDCWD, &t);

    if (r < 0)
        return r;
    for (size_t i = 0; i < t.n; i++)
        if (fstype_is_local_block(t.mounts[i].fstype) && path_is_below(t.mounts[i].target, root)) {
            const Mount *m = &t.mounts[i];
            const unsigned numbers[] = {m->id, m->major, m->minor};

            hash = hash64(numbers, sizeof(numbers), hash);
            hash = hash64(m->target, strlen(m->target), hash);
        }
    *ret = hash;
    return 0;
}

int mount_watch_start(MountWatch *w, const char *root)
{
    int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC), r;

    *w = (MountWatch){0};
    if (fd < 0)
        return -errno;
    *w = (MountWatch){.root = root, .fd = fd};
    r = fingerprint(root, &w->seen);
    if (r < 0)
        mount_watch_stop(w);
    return r;
}

void mount_watch_stop(MountWatch *w)
{
    if (w->root)
        close(w->fd);
    *w = (MountWatch){0};
}

int mount_watch_wait(MountWatch *w, usec_t until, const sigset_t *signals, int *ret_signal)
{
    _cleanup_close_ int fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);

    *ret_signal = 0;
    if (fd < 0)
        return -errno;
    for (;;) {
        struct pollfd fds[] = {{.fd = w->fd, .events = POLLPRI}, {.fd = fd, .events = POLLIN}};
        usec_t now = clock_now(CLOCK_MONOTONIC), left = until > now ? until - now : 0;
        struct signalfd_siginfo si;
        uint64_t seen = w->seen;
        int r;

        if (left == 0)
            return 0;
        if (poll(fds, ELEMENTSOF(fds), (int)(left / USEC_PER_MSEC) + 1) < 0 && errno != EINTR)
            return -errno;
        if (read(fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
            *ret_signal = (int)si.ssi_signo;
            return 0;
        }
        r = fingerprint(w->root, &w->seen);
        if (r < 0)
            return r;
        if (w->seen != seen)
            return 1;
    }
}
