/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads the queues of the groups. */

#include "observe/fanotify-internal.h"

#include "base/macros.h"
#include "base/open.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* The events of one read(2) of a group that reports descriptors. The kernel opens a descriptor for
 * each of them. If the process may not have more descriptors, the kernel drops the event silently.
 */
#define DESCRIPTORS_READ_MAX   256U
#define DESCRIPTORS_READ_SHARE 4U /* of the descriptors that the process may have */

/* The room for events that fanotify_take_descriptors() has read. The kernel gives memory to the
 * pages that are used only. */
#define TAKEN_SIZE (4U * 1024 * 1024)

/* An event in that room. Its handle and its path follow. */
typedef struct TakenEvent {
    uint32_t filesystem, pid;
    int32_t handle_type;
    uint16_t handle_size, name_size;
    bool directory, exec;
} TakenEvent;

/* The kernel pads metadata and info records to a multiple of this (FANOTIFY_EVENT_ALIGN). */
#define INFO_ALIGN 4

/* Where the events of a group go. */
typedef struct Sink {
    fanotify_before_t before;
    fanotify_handler_t handler;
    void *arg;
    uint64_t *overflows;
    int events_max; /* no further read(2) after this number */
} Sink;

static const Watch *watch_by_fsid(const Fanotify *f, const void *fsid)
{
    for (size_t i = 0; i < f->n_watches; i++)
        if (!f->watches[i].by_descriptor && !f->watches[i].gone &&
            memcmp(&f->watches[i].fsid, fsid, sizeof(fsid_t)) == 0)
            return &f->watches[i];
    return NULL;
}

/* Handles an event in file-handle mode: metadata, then info records. */
static int handle_event(const Fanotify *f, const struct fanotify_event_metadata *m,
                        fanotify_handler_t handler, void *arg)
{
    const char *p = (const char *)m + m->metadata_len, *end = (const char *)m + m->event_len;

    if (m->metadata_len < sizeof(*m) || m->metadata_len > m->event_len ||
        m->metadata_len % INFO_ALIGN != 0)
        return 0;
    while ((size_t)(end - p) >= sizeof(struct fanotify_event_info_header)) {
        const struct fanotify_event_info_fid *info = (const void *)p;
        const struct file_handle *h = (const void *)info->handle;
        const Watch *w;
        LoggedObject o;
        size_t name_room;

        if (info->hdr.len < sizeof(struct fanotify_event_info_header) ||
            info->hdr.len > (size_t)(end - p) || info->hdr.len % INFO_ALIGN != 0)
            return 0;
        p += info->hdr.len;
        if (info->hdr.info_type != FAN_EVENT_INFO_TYPE_DFID_NAME ||
            info->hdr.len < sizeof(*info) + sizeof(*h) ||
            info->hdr.len < sizeof(*info) + sizeof(*h) + h->handle_bytes)
            continue;
        w = watch_by_fsid(f, &info->fsid);
        if (!w)
            continue;
        name_room = info->hdr.len - sizeof(*info) - sizeof(*h) - h->handle_bytes;
        o = (LoggedObject){
                .filesystem = w->number,
                .handle_type = h->handle_type,
                .handle_size = (uint16_t)h->handle_bytes,
                .handle = h->f_handle,
                .name = (const char *)h->f_handle + h->handle_bytes,
                .directory = m->mask & FAN_ONDIR,
        };
        o.name_size = (uint16_t)strnlen(o.name, name_room);
        return handler(arg, &o, (uint32_t)m->pid, m->mask & FAN_OPEN_EXEC);
    }
    return 0;
}

/* Handles an event in descriptor mode: reads the path from /proc, and closes the descriptor. */
static int descriptor_event(const Fanotify *f, const struct fanotify_event_metadata *m,
                            fanotify_handler_t handler, void *arg)
{
    char path[PATH_MAX];
    LoggedObject o;
    struct stat st;
    union {
        struct file_handle h;
        char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } x = {.h = {.handle_bytes = MAX_HANDLE_SZ}};
    uint32_t number = 0;
    bool known = false;
    int mount_id;

    if (m->fd < 0)
        return 0;
    if (fstat(m->fd, &st) == 0) {
        for (size_t i = 0; i < f->n_watches && !known; i++)
            if (f->watches[i].by_descriptor && !f->watches[i].gone &&
                f->watches[i].st_dev == st.st_dev) {
                number = f->watches[i].number;
                known = true;
            }
        known = known && fd_get_path(m->fd, path, sizeof(path)) >= 0;
        if (known && name_to_handle_at(m->fd, "", &x.h, &mount_id, AT_EMPTY_PATH) < 0)
            x.h.handle_bytes = 0;
    }
    close(m->fd);
    if (!known)
        return 0;
    o = (LoggedObject){
            .filesystem = number,
            .handle_type = x.h.handle_type,
            .handle_size = (uint16_t)x.h.handle_bytes,
            .handle = x.h.f_handle,
            .name = path,
            .name_size = (uint16_t)strlen(path),
            .directory = S_ISDIR(st.st_mode),
    };
    return handler(arg, &o, (uint32_t)m->pid, m->mask & FAN_OPEN_EXEC);
}

static size_t read_size_of(bool by_descriptor)
{
    struct rlimit l = {.rlim_cur = DESCRIPTORS_READ_MAX * DESCRIPTORS_READ_SHARE};
    size_t n;

    if (!by_descriptor)
        return READ_SIZE;
    (void)getrlimit(RLIMIT_NOFILE, &l);
    n = (size_t)MIN(l.rlim_cur / DESCRIPTORS_READ_SHARE, (rlim_t)DESCRIPTORS_READ_MAX);
    n = MAX(n, (size_t)1);
    return n * sizeof(struct fanotify_event_metadata);
}

/* Reads events. Returns their size in bytes, or 0 if the queue is empty or cannot be read. If the
 * kernel cannot open the file of an event, it drops the event. If that event is the first of a
 * read(2), the call fails with the error of the open, which is EAGAIN for a lease, as for an empty
 * queue. *ret_dropped is then true if more events are queued. */
static ssize_t read_events(int fd, bool by_descriptor, char *buf, size_t size, bool *ret_dropped)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ssize_t n;

    do
        n = read(fd, buf, size);
    while (n < 0 && errno == EINTR);
    *ret_dropped = n < 0 && by_descriptor && poll(&p, 1, 0) > 0 && (p.revents & POLLIN);
    return MAX(n, 0);
}

static int drain_group(Fanotify *f, int fd, bool by_descriptor, const Sink *s)
{
    /* The kernel aligns events to 4 bytes; their 64-bit masks need 8. */
    union {
        struct fanotify_event_metadata m;
        char room[1024]; /* a handle and a name have at most 128 and 256 bytes */
    } event;
    size_t size = read_size_of(by_descriptor);
    int events = 0, r = 0;

    for (;;) {
        bool dropped;
        ssize_t n = read_events(fd, by_descriptor, f->buf, size, &dropped), at = 0;

        if (r >= 0)
            r = s->before(s->arg);
        if (n == 0 && !dropped)
            return r < 0 ? r : events;
        events += dropped;
        for (; n - at >= (ssize_t)sizeof(event.m); at += event.m.event_len) {
            const struct fanotify_event_metadata *m = &event.m;

            memcpy(&event.m, f->buf + at, sizeof(event.m));
            if (m->event_len < sizeof(event.m) ||
                m->event_len > MIN((size_t)(n - at), sizeof(event)))
                return -EPROTO;
            memcpy(&event, f->buf + at, m->event_len);
            if (m->vers != FANOTIFY_METADATA_VERSION)
                return -EPROTO;
            if (m->mask & FAN_Q_OVERFLOW) {
                (*s->overflows)++;
                continue;
            }
            events++;
            /* After an error the rest of the queue is read and dropped. */
            if (r < 0 && by_descriptor && m->fd >= 0)
                close(m->fd);
            else if (r >= 0)
                r = by_descriptor ? descriptor_event(f, m, s->handler, s->arg)
                                  : handle_event(f, m, s->handler, s->arg);
        }
        if (events >= s->events_max)
            return r < 0 ? r : events; /* events arrive faster than they are read: the recorder's
                                          timer reads the rest */
    }
}

/* A fanotify_before_t */
static int nothing(void *arg _unused_)
{
    return 0;
}

static size_t taken_size(const TakenEvent *e)
{
    return sizeof(*e) + e->handle_size + e->name_size + 1U;
}

/* A fanotify_handler_t: keeps an event in descriptor mode for the next fanotify_drain(). */
static int take(void *arg, const LoggedObject *o, uint32_t pid, bool exec)
{
    Fanotify *f = arg;
    TakenEvent e = {
            .filesystem = o->filesystem,
            .pid = pid,
            .handle_type = o->handle_type,
            .handle_size = o->handle_size,
            .name_size = o->name_size,
            .directory = o->directory,
            .exec = exec,
    };
    char *at = f->taken + f->taken_size;

    memcpy(at, &e, sizeof(e));
    memcpy(at + sizeof(e), o->handle, e.handle_size);
    memcpy(at + sizeof(e) + e.handle_size, o->name, e.name_size + 1U);
    f->taken_size += taken_size(&e);
    return 0;
}

int fanotify_take_descriptors(Fanotify *f)
{
    size_t fit;
    int r;

    if (f->descriptor_fd < 0)
        return 0;
    if (!f->taken)
        f->taken = malloc(TAKEN_SIZE);
    if (!f->taken)
        return -ENOMEM;
    fit = (TAKEN_SIZE - f->taken_size) / (sizeof(TakenEvent) + MAX_HANDLE_SZ + PATH_MAX);
    if (fit <= DESCRIPTORS_READ_MAX)
        return 0;
    r = drain_group(f, f->descriptor_fd, true,
                    &(Sink){
                            .before = nothing,
                            .handler = take,
                            .arg = f,
                            .overflows = &f->taken_overflows,
                            .events_max = (int)(fit - DESCRIPTORS_READ_MAX),
                    });
    return MIN(r, 0);
}

/* Handles the events that fanotify_take_descriptors() has read. Returns their number, or the first
 * negative value that a function returned. */
static int drain_taken(Fanotify *f, const Sink *s)
{
    int events = 0, r = f->taken_size > 0 ? s->before(s->arg) : 0;
    TakenEvent e;

    for (size_t at = 0; at < f->taken_size && r >= 0; at += taken_size(&e)) {
        const char *behind = f->taken + at + sizeof(e);

        memcpy(&e, f->taken + at, sizeof(e));
        r = s->handler(s->arg,
                       &(LoggedObject){
                               .filesystem = e.filesystem,
                               .handle_type = e.handle_type,
                               .handle_size = e.handle_size,
                               .handle = (const uint8_t *)behind,
                               .name = behind + e.handle_size,
                               .name_size = e.name_size,
                               .directory = e.directory,
                       },
                       e.pid, e.exec);
        events++;
    }
    *s->overflows += f->taken_overflows;
    f->taken_size = f->taken_overflows = 0;
    return r < 0 ? r : events;
}

/* Handles the events of the adopted group, and closes it when its queue is empty. */
static int drain_adopted(Fanotify *f, const Sink *s)
{
    int events;

    if (f->adopted_fd < 0)
        return 0;
    events = drain_group(f, f->adopted_fd, f->adopted_by_descriptor, s);
    if (events < s->events_max) {
        close(f->adopted_fd);
        f->adopted_fd = -EBADF;
    }
    return events;
}

int fanotify_drain(Fanotify *f, fanotify_before_t before, fanotify_handler_t handler, void *arg,
                   uint64_t *overflows)
{
    const Sink s = {before, handler, arg, overflows, FANOTIFY_DRAIN_EVENTS};
    int taken, a = drain_adopted(f, &s), b = 0;

    if (a < 0 || a >= s.events_max)
        return a; /* the events of the other groups are younger */
    taken = drain_taken(f, &s);
    taken = taken < 0 ? taken : taken + a;
    a = drain_group(f, f->handle_fd, false, &s);
    if (a >= 0 && f->descriptor_fd >= 0)
        b = drain_group(f, f->descriptor_fd, true, &s);
    return taken < 0 ? taken : a < 0 ? a : b < 0 ? b : taken + a + b;
}
