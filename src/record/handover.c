/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/handover.h"

#include "base/clock.h"
#include "base/macros.h"
#include "record/fanotify.h"
#include "record/proc-connector.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define MESSAGE_MAGIC 0x48534832U /* "HSH2" */

/* Both programs come from one package, but an initrd may be older than the root filesystem: a
 * message of another size or magic is refused. Native byte order. */
typedef struct Message {
    uint32_t magic;
    uint32_t n_fds; /* 1: the group, 2: the group and the connector */
    uint64_t by_descriptor;
    Moment start;
} Message;

#define FDS_MAX 2

void handover_done(Handover *h)
{
    if (h->fanotify_fd >= 0)
        close(h->fanotify_fd);
    if (h->connector_fd >= 0)
        close(h->connector_fd);
    *h = (Handover)HANDOVER_NULL;
}

int handover_begin(const char *root, Handover *ret)
{
    _cleanup_handover_ Handover h = HANDOVER_NULL;
    int r;

    r = h.fanotify_fd = fanotify_open_group(true, false);
    if (r >= 0)
        r = fanotify_mark_filesystem(h.fanotify_fd, root);
    if (fanotify_needs_descriptors(r)) {
        close(h.fanotify_fd);
        h.by_descriptor = true;
        r = h.fanotify_fd = fanotify_open_group(true, true);
        if (r >= 0)
            r = fanotify_mark_filesystem(h.fanotify_fd, root);
    }
    if (r < 0)
        return r;
    moment_read(&h.start);
    r = proc_connector_open();
    h.connector_fd = r >= 0 ? r : -EBADF;
    *ret = h;
    h = (Handover)HANDOVER_NULL;
    return 0;
}

static int address(const char *path, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(ret->sun_path))
        return -ENAMETOOLONG;
    memcpy(ret->sun_path, path, strlen(path) + 1);
    return 0;
}

int handover_listen(const char *path)
{
    _cleanup_close_ int fd = -EBADF;
    struct sockaddr_un sa;
    int r = address(path, &sa);

    if (r < 0)
        return r;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 1) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* 1: the peer of the connected socket belongs to root, 0: it does not, or a negative errno. */
static int peer_is_root(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return -errno;
    return peer.uid == 0;
}

/* Waits until the descriptor is readable or the time has come. 0, -ETIMEDOUT or a negative errno.
 */
static int await_readable(int fd, usec_t until)
{
    for (;;) {
        usec_t now = clock_now(CLOCK_MONOTONIC);
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int n = poll(&p, 1, now < until ? (int)((until - now) / USEC_PER_MSEC) + 1 : 0);

        if (n > 0)
            return 0;
        if (n == 0)
            return -ETIMEDOUT;
        if (errno != EINTR)
            return -errno;
    }
}

/* The ancillary data of a message with descriptors. */
typedef union Ancillary {
    char buf[CMSG_SPACE(sizeof(int) * FDS_MAX)];
    struct cmsghdr align;
} Ancillary;

static int send_handover(int fd, const Handover *h)
{
    Message m = {
            .magic = MESSAGE_MAGIC,
            .n_fds = h->connector_fd >= 0 ? 2 : 1,
            .by_descriptor = h->by_descriptor,
            .start = h->start,
    };
    const int fds[FDS_MAX] = {h->fanotify_fd, h->connector_fd};
    struct iovec iov = {.iov_base = &m, .iov_len = sizeof(m)};
    Ancillary ancillary = {0};
    struct msghdr header = {
            .msg_iov = &iov,
            .msg_iovlen = 1,
            .msg_control = &ancillary,
            .msg_controllen = CMSG_SPACE(sizeof(int) * m.n_fds),
    };
    struct cmsghdr *c = CMSG_FIRSTHDR(&header);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * m.n_fds);
    memcpy(CMSG_DATA(c), fds, sizeof(int) * m.n_fds);
    return sendmsg(fd, &header, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int handover_offer(int listen_fd, const Handover *h, usec_t timeout)
{
    usec_t until = clock_now(CLOCK_MONOTONIC) + timeout;
    int r;

    for (;;) {
        _cleanup_close_ int fd = -EBADF;

        r = await_readable(listen_fd, until);
        if (r < 0)
            return r;
        fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR))
            continue;
        if (fd < 0)
            return -errno;
        r = peer_is_root(fd);
        if (r > 0)
            return send_handover(fd, h);
    }
}

/* Takes every descriptor of the message over, so that a message that is refused leaks none. Returns
 * their number. */
static size_t take_fds(struct msghdr *header, int *fds)
{
    size_t n = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
            n = MIN((c->cmsg_len - CMSG_LEN(0)) / sizeof(int), (size_t)FDS_MAX);
            memcpy(fds, CMSG_DATA(c), n * sizeof(int));
        }
    return n;
}

static int receive_handover(int fd, Handover *ret)
{
    _cleanup_handover_ Handover h = HANDOVER_NULL;
    Message m = {0};
    int fds[FDS_MAX] = {-EBADF, -EBADF};
    struct iovec iov = {.iov_base = &m, .iov_len = sizeof(m)};
    Ancillary ancillary = {0};
    struct msghdr header = {
            .msg_iov = &iov,
            .msg_iovlen = 1,
            .msg_control = &ancillary,
            .msg_controllen = sizeof(ancillary),
    };
    ssize_t size = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
    size_t n;

    if (size < 0)
        return -errno;
    n = take_fds(&header, fds);
    h.fanotify_fd = fds[0];
    h.connector_fd = fds[1];
    if (size == 0)
        return -ECONNREFUSED;
    if (size != sizeof(m) || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
        m.magic != MESSAGE_MAGIC || n == 0 || m.n_fds != n ||
        m.start.boottime > clock_now(CLOCK_BOOTTIME))
        return -EBADMSG;
    h.by_descriptor = m.by_descriptor;
    h.start = m.start;
    *ret = h;
    h = (Handover)HANDOVER_NULL;
    return 0;
}

int handover_claim(const char *path, Handover *ret)
{
    _cleanup_close_ int fd = -EBADF;
    struct sockaddr_un sa;
    int r = address(path, &sa);

    if (r < 0)
        return r;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
        return -errno;
    r = peer_is_root(fd);
    if (r <= 0)
        return r < 0 ? r : -EPERM;
    r = await_readable(fd, clock_now(CLOCK_MONOTONIC) + HANDOVER_CLAIM_USEC);
    if (r >= 0)
        r = receive_handover(fd, ret);
    (void)unlink(path);
    return r;
}
