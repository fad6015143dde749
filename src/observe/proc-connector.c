/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "observe/proc-connector.h"

#include "base/clock.h"
#include "base/macros.h"

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

int proc_connector_open(void)
{
    _cleanup_close_ int fd =
            socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
    struct sockaddr_nl sa = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
    int room = 4 * 1024 * 1024;
    struct {
        struct nlmsghdr header;
        struct cn_msg message;
        enum proc_cn_mcast_op op;
    } __attribute__((packed)) request = {
            .header = {.nlmsg_len = sizeof(request), .nlmsg_type = NLMSG_DONE},
            .message = {.id = {CN_IDX_PROC, CN_VAL_PROC}, .len = sizeof(request.op)},
            .op = PROC_CN_MCAST_LISTEN,
    };

    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
        return -errno;
    /* Up to a fifth of a second passes between two drains. Thousands of processes may be forked in
     * this time, so the buffer is large. */
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) < 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    if (send(fd, &request, sizeof(request), 0) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* The clocks of the events and of the process table. */
typedef struct Clocks {
    usec_t asleep; /* by which CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC */
    usec_t start;  /* zero of the process table (CLOCK_BOOTTIME) */
} Clocks;

/* Returns how long the machine was suspended since it was booted. */
static usec_t time_asleep(void)
{
    usec_t boottime = clock_now(CLOCK_BOOTTIME), monotonic = clock_now(CLOCK_MONOTONIC);

    return boottime > monotonic ? boottime - monotonic : 0;
}

static int handle_event(const struct proc_event *e, ProcessTable *t, const Clocks *c)
{
    /* The kernel stamps the events with ktime_get_ns(), which is CLOCK_MONOTONIC. */
    usec_t boottime = e->timestamp_ns / NSEC_PER_USEC + c->asleep;
    usec_t at = boottime > c->start ? boottime - c->start : 0;

    switch (e->what) {
    case PROC_EVENT_FORK:
        /* Threads belong to the application of their process. */
        if (e->event_data.fork.child_pid != e->event_data.fork.child_tgid)
            return 0;
        return process_table_fork(t, (uint32_t)e->event_data.fork.parent_tgid,
                                  (uint32_t)e->event_data.fork.child_tgid);
    case PROC_EVENT_UID:
        process_table_uid(t, (uint32_t)e->event_data.id.process_tgid, e->event_data.id.r.ruid);
        return 0;
    case PROC_EVENT_EXEC:
        process_table_exec(t, (uint32_t)e->event_data.exec.process_tgid, at);
        return 0;
    case PROC_EVENT_EXIT:
        if (e->event_data.exit.process_pid == e->event_data.exit.process_tgid)
            process_table_exit(t, (uint32_t)e->event_data.exit.process_tgid, at);
        return 0;
    default:
        return 0;
    }
}

/* Returns true if the message is complete. NLMSG_OK() is not used, because it compares signed and
 * unsigned numbers. */
static bool is_whole(const struct nlmsghdr *h, size_t left)
{
    return left >= sizeof(*h) && h->nlmsg_len >= sizeof(*h) && h->nlmsg_len <= left;
}

/* Returns the message after `h`. The last message may lack its padding. */
static const struct nlmsghdr *next_message(const struct nlmsghdr *h, size_t *left)
{
    size_t step = MIN((size_t)NLMSG_ALIGN(h->nlmsg_len), *left);

    *left -= step;
    return (const struct nlmsghdr *)((const char *)h + step);
}

int proc_connector_drain(int fd, ProcessTable *t, usec_t start_boottime, uint64_t *lost)
{
    const Clocks clocks = {time_asleep(), start_boottime};
    int events = 0;

    /* The number of events is bounded, because processes may fork faster than events are read. */
    while (events < 200000) {
        char buf[8192] __attribute__((aligned(NLMSG_ALIGNTO)));
        ssize_t n = recv(fd, buf, sizeof(buf), 0);

        if (n < 0) {
            if (errno == EINTR)
                continue;
            if (errno == ENOBUFS) {
                (*lost)++;
                continue;
            }
            return errno == EAGAIN || errno == EWOULDBLOCK ? events : -errno;
        }
        size_t left = (size_t)n;

        for (const struct nlmsghdr *h = (struct nlmsghdr *)buf; is_whole(h, left);
             h = next_message(h, &left)) {
            const struct cn_msg *m = NLMSG_DATA(h);
            struct proc_event e = {0};
            int r;

            if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)) || m->id.idx != CN_IDX_PROC ||
                m->len > h->nlmsg_len - NLMSG_LENGTH(sizeof(*m)))
                continue;
            memcpy(&e, m->data, MIN((size_t)m->len, sizeof(e)));
            events++;
            r = handle_event(&e, t, &clocks);
            if (r < 0)
                return r;
        }
    }
    return events;
}
