/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/handover.h"

#include "base/clock.h"
#include "base/macros.h"
#include "observe/fanotify.h"
#include "observe/proc-connector.h"
#include "volume/mount-table.h"

#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#define MESSAGE_MAGIC   0x4853484fU /* "HSHO" */
#define MESSAGE_VERSION 4U

/* The message that accompanies the descriptors, in native byte order. headstart-init and headstartd
 * come from one package, but an initrd may contain an older headstart-init than the root
 * filesystem, so the version is checked. */
typedef struct Message {
    uint32_t magic, version;
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

/* Returns false if headstartd records no filesystem of the type of `root`. */
static bool may_be_recorded(const char *root)
{
    _cleanup_mount_table_ MountTable t = {0};
    const Mount *m = mount_table_read(AT_FDCWD, &t) < 0 ? NULL : mount_table_find(&t, root);

    return !m || fstype_is_local_block(m->fstype);
}

int handover_begin(const char *root, bool unlimited, Handover *ret)
{
    _cleanup_handover_ Handover h = HANDOVER_NULL;
    int r;

    if (!may_be_recorded(root))
        return -ENODEV;
    r = h.fanotify_fd = fanotify_open_group(unlimited, false);
    if (r >= 0)
        r = fanotify_mark_filesystem(h.fanotify_fd, root);
    if (fanotify_needs_descriptors(r)) {
        close(h.fanotify_fd);
        h.by_descriptor = true;
        r = h.fanotify_fd = fanotify_open_group(unlimited, true);
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

/* Makes a socket, and the address for `path`. Returns the descriptor of the socket or a negative
 * errno. */
static int new_socket(const char *path, struct sockaddr_un *ret)
{
    int r = address(path, ret);

    if (r < 0)
        return r;
    r = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return r < 0 ? -errno : r;
}

int handover_listen(const char *path)
{
    struct sockaddr_un sa;
    _cleanup_close_ int fd = new_socket(path, &sa);

    if (fd < 0)
        return fd;
    if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 1) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* Returns 1 if the peer of the connected socket belongs to root, 0 if it does not, or a negative
 * errno. */
static int peer_is_root(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return -errno;
    return peer.uid == 0;
}

/* Waits until the descriptor is readable or the time is `until`. Returns 0, -ETIMEDOUT or another
 * negative errno. */
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

static Message message_of(const Handover *h)
{
    return (Message){
            .magic = MESSAGE_MAGIC,
            .version = MESSAGE_VERSION,
            .by_descriptor = h->by_descriptor,
            .start = h->start,
    };
}

/* Checks a message of `size` bytes and writes its facts to the handover. Returns 0, -EPROTO or
 * -EBADMSG. */
static int read_message(const Message *m, size_t size, Handover *h)
{
    if (size < offsetof(Message, by_descriptor) || m->magic != MESSAGE_MAGIC)
        return -EBADMSG;
    if (m->version != MESSAGE_VERSION)
        return -EPROTO;
    if (size != sizeof(*m) || m->start.boottime > clock_now(CLOCK_BOOTTIME))
        return -EBADMSG;
    h->by_descriptor = m->by_descriptor;
    h->start = m->start;
    return 0;
}

/* The ancillary data of a message with descriptors. */
typedef union Ancillary {
    char buf[CMSG_SPACE(sizeof(int) * FDS_MAX)];
    struct cmsghdr align;
} Ancillary;

/* Sends `size` bytes with n descriptors, to `to` if the socket is not connected. */
static int send_with_fds(int fd, const struct sockaddr_un *to, socklen_t to_size, const void *data,
                         size_t size, const int *fds, size_t n)
{
    struct iovec iov = {.iov_base = (void *)data, .iov_len = size};
    Ancillary ancillary = {0};
    struct msghdr header = {
            .msg_name = (void *)to,
            .msg_namelen = to_size,
            .msg_iov = &iov,
            .msg_iovlen = 1,
            .msg_control = &ancillary,
            .msg_controllen = CMSG_SPACE(sizeof(int) * n),
    };
    struct cmsghdr *c = CMSG_FIRSTHDR(&header);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * n);
    memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
    return sendmsg(fd, &header, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int send_handover(int fd, const Handover *h)
{
    const int fds[FDS_MAX] = {h->fanotify_fd, h->connector_fd};
    const Message m = message_of(h);

    return send_with_fds(fd, NULL, 0, &m, sizeof(m), fds, h->connector_fd >= 0 ? 2 : 1);
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

/* Takes ownership of every descriptor of the message, so that a message that is refused leaks
 * none. */
static void receive_descriptors(struct msghdr *header, int *fds)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
            size_t n = MIN((c->cmsg_len - CMSG_LEN(0)) / sizeof(int), (size_t)FDS_MAX);

            memcpy(fds, CMSG_DATA(c), n * sizeof(int));
        }
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
    int r;

    if (size < 0)
        return -errno;
    receive_descriptors(&header, fds);
    h.fanotify_fd = fds[0];
    h.connector_fd = fds[1];
    if (size == 0)
        return -ECONNREFUSED;
    if (h.fanotify_fd < 0 || (header.msg_flags & MSG_CTRUNC))
        return -EBADMSG;
    r = read_message(&m, (header.msg_flags & MSG_TRUNC) ? SIZE_MAX : (size_t)size, &h);
    if (r < 0)
        return r;
    *ret = h;
    h = (Handover)HANDOVER_NULL;
    return 0;
}

int handover_claim(const char *path, Handover *ret)
{
    struct sockaddr_un sa;
    _cleanup_close_ int fd = new_socket(path, &sa);
    int r;

    if (fd < 0)
        return fd;
    if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
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

/* --- the descriptor store of systemd ---------------------------------------------------------- */

/* Makes the socket address for $NOTIFY_SOCKET, which is a path, or `@` and a name in the abstract
 * namespace. */
static int manager_address(const char *manager, struct sockaddr_un *ret, socklen_t *ret_size)
{
    size_t l = strlen(manager);
    int r = address(manager, ret);

    if (r < 0)
        return r;
    if (l < 2 || (manager[0] != '/' && manager[0] != '@'))
        return -EINVAL;
    if (manager[0] == '@')
        ret->sun_path[0] = 0;
    *ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + l);
    return 0;
}

/* Makes a memfd that contains the message; its file offset is 0. */
static int facts_open(const Handover *h)
{
    _cleanup_close_ int fd = memfd_create(HANDOVER_NAME_FACTS, MFD_CLOEXEC);
    const Message m = message_of(h);

    if (fd < 0 || pwrite(fd, &m, sizeof(m), 0) < 0)
        return -errno;
    return TAKE_FD(fd);
}

int handover_store(const char *manager, const Handover *h)
{
    _cleanup_close_ int fd = -EBADF, facts_fd = facts_open(h);
    const struct {
        const char *name;
        int fd;
    } items[] = {{HANDOVER_NAME_GROUP, h->fanotify_fd},
                 {HANDOVER_NAME_CONNECTOR, h->connector_fd},
                 {HANDOVER_NAME_FACTS, facts_fd}};
    struct sockaddr_un sa;
    socklen_t size;
    int r = facts_fd < 0 ? facts_fd : manager_address(manager, &sa, &size);

    if (r < 0)
        return r;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    for (size_t i = 0; i < ELEMENTSOF(items); i++) {
        char text[64];
        int n = snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", items[i].name);

        if (items[i].fd < 0)
            continue;
        r = send_with_fds(fd, &sa, size, text, (size_t)n, &items[i].fd, 1);
        if (r < 0)
            return r;
    }
    return 0;
}

int handover_from_descriptors(const int *fds, char *const *names, int n, Handover *ret)
{
    _cleanup_handover_ Handover h = HANDOVER_NULL;
    _cleanup_close_ int facts_fd = -EBADF;
    Message m = {0};
    ssize_t size;
    int r;

    for (int i = 0; i < n; i++) {
        int *place = strcmp(names[i], HANDOVER_NAME_GROUP) == 0       ? &h.fanotify_fd
                     : strcmp(names[i], HANDOVER_NAME_CONNECTOR) == 0 ? &h.connector_fd
                     : strcmp(names[i], HANDOVER_NAME_FACTS) == 0     ? &facts_fd
                                                                      : NULL;

        if (!place)
            continue;
        if (*place >= 0)
            close(*place);
        *place = fds[i];
    }
    if (h.fanotify_fd < 0 && facts_fd < 0)
        return -ENOENT;
    if (h.fanotify_fd < 0 || facts_fd < 0)
        return -EBADMSG;
    size = pread(facts_fd, &m, sizeof(m), 0);
    r = size < 0 ? -errno : read_message(&m, (size_t)size, &h);
    if (r < 0)
        return r;
    *ret = h;
    h = (Handover)HANDOVER_NULL;
    return 0;
}
