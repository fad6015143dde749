/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Over 500 lines in one file: all accesses through the group and its marks, and the calls that make
 * them in another thread if the disk may hang. */

#include "observe/fanotify.h"

#include "base/log.h"
#include "base/macros.h"
#include "base/open.h"
#include "base/rooted.h"
#include "system/disk-call.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

/* The buffer of one read(2): some 1,500 events. */
#define READ_SIZE (128U * 1024)

/* The events of one read(2) of a group that reports descriptors. The kernel opens a descriptor for
 * each of them. If the process may not have more descriptors, the kernel drops the event silently.
 */
#define DESCRIPTORS_READ_MAX   256U
#define DESCRIPTORS_READ_SHARE 4U /* of the descriptors that the process may have */

/* The room for events that fanotify_take_descriptors() has read. The kernel gives memory to the
 * pages that are used only. */
#define TAKEN_SIZE (4U * 1024 * 1024)

/* An event in that room. Its path follows. */
typedef struct TakenEvent {
    uint32_t filesystem, pid;
    uint16_t name_size;
    bool directory, exec;
} TakenEvent;

/* From this number of watches on, a new one replaces that of a filesystem that is not mounted. A
 * user who mounts one image after the other must not make the list of watches long. */
#define WATCHES_FEW 64U

/* The kernel writes a line of some 70 bytes for each mark. */
#define FDINFO_SIZE_MAX (1024U * 1024)

/* The kernel pads metadata and info records to a multiple of this (FANOTIFY_EVENT_ALIGN). */
#define INFO_ALIGN 4

/* Flags of every group in either mode. */
#define GROUP_FLAGS (FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK)

/* How the kernel opens the file of an event, which it does inside read(2) of the group. Without
 * O_NONBLOCK it would wait for a lease of a user on that file (fcntl(2), F_SETLEASE), up to 45
 * seconds for each file. */
#define EVENT_FLAGS (O_RDONLY | O_NONBLOCK | O_NOATIME | O_CLOEXEC | O_LARGEFILE)

/* A watched filesystem. It is not held open, so that it can be unmounted. */
typedef struct Watch {
    uint32_t number;
    uint64_t st_dev, mount_dev;
    uint64_t call_dev; /* for disk_call() */
    char *target;
    int mount_fd; /* for open_by_handle_at(2), while objects are being resolved; unused if call_dev
                     is not 0 */
    fsid_t fsid;
    bool by_descriptor;
    bool gone; /* it is not mounted now */
} Watch;

struct Fanotify {
    int handle_fd;     /* the group in file-handle mode */
    int descriptor_fd; /* the group in descriptor mode; -EBADF until needed */
    int adopted_fd;    /* a group whose queue must still be read, or -EBADF */
    bool adopted_by_descriptor;
    bool adopted_is_watched; /* its marks included a filesystem that is watched */
    bool unlimited;          /* the kernel does not bound the queue of either group */
    uint64_t mask;           /* kinds of events to report */
    Watch *watches;
    size_t n_watches, allocated_watches;
    char *buf;
    char *taken; /* of TAKEN_SIZE bytes; NULL until needed */
    size_t taken_size;
    uint64_t taken_overflows;
};

/* Where the events of a group go. */
typedef struct Sink {
    fanotify_before_t before;
    fanotify_handler_t handler;
    void *arg;
    uint64_t *overflows;
    int events_max; /* no further read(2) after this number */
} Sink;

Fanotify *fanotify_free(Fanotify *f)
{
    if (!f)
        return NULL;
    if (f->handle_fd >= 0)
        close(f->handle_fd);
    if (f->descriptor_fd >= 0)
        close(f->descriptor_fd);
    if (f->adopted_fd >= 0)
        close(f->adopted_fd);
    fanotify_resolve_done(f);
    for (size_t i = 0; i < f->n_watches; i++)
        free(f->watches[i].target);
    free(f->watches);
    free(f->buf);
    free(f->taken);
    free(f);
    return NULL;
}

int fanotify_open_group(bool unlimited, bool by_descriptor)
{
    unsigned flags = GROUP_FLAGS | (unlimited ? FAN_UNLIMITED_QUEUE : 0);
    int fd = by_descriptor ? fanotify_init(flags, EVENT_FLAGS)
                           : fanotify_init(flags | FAN_REPORT_DFID_NAME, O_RDONLY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

#define MASK_OPENS (FAN_OPEN | FAN_OPEN_EXEC | FAN_ONDIR)

static int mark_filesystem(int group_fd, uint64_t mask, const char *target)
{
    return fanotify_mark(group_fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, mask, AT_FDCWD, target) < 0
                   ? -errno
                   : 0;
}

int fanotify_mark_filesystem(int group_fd, const char *target)
{
    return mark_filesystem(group_fd, MASK_OPENS, target);
}

bool fanotify_needs_descriptors(int error)
{
    return error == -EXDEV || error == -EOPNOTSUPP || error == -ENODEV;
}

/* Makes a Fanotify of an open group in file-handle mode. Takes ownership of the group on
 * success. */
static int new_of_group(int handle_fd, bool unlimited, Fanotify **ret)
{
    Fanotify *f = calloc(1, sizeof(Fanotify));

    if (!f)
        return -ENOMEM;
    f->handle_fd = f->descriptor_fd = f->adopted_fd = -EBADF;
    f->unlimited = unlimited;
    f->mask = MASK_OPENS;
    f->buf = malloc(READ_SIZE);
    if (!f->buf) {
        fanotify_free(f);
        return -ENOMEM;
    }
    f->handle_fd = handle_fd;
    *ret = f;
    return 0;
}

int fanotify_new(bool unlimited, Fanotify **ret)
{
    _cleanup_close_ int fd = fanotify_open_group(unlimited, false);
    int r = fd < 0 ? fd : new_of_group(fd, unlimited, ret);

    if (r >= 0)
        TAKE_FD(fd);
    return r;
}

int fanotify_new_exec(Fanotify **ret)
{
    int r = fanotify_new(false, ret);

    if (r >= 0)
        (*ret)->mask = FAN_OPEN_EXEC;
    return r;
}

void fanotify_get_groups(const Fanotify *f, int ret[static 2])
{
    ret[0] = f->handle_fd;
    ret[1] = f->descriptor_fd;
}

int fanotify_adopt(int group_fd, bool by_descriptor, Fanotify **ret)
{
    int r = fanotify_new(true, ret);

    if (r < 0)
        return r;
    (*ret)->adopted_fd = group_fd;
    (*ret)->adopted_by_descriptor = by_descriptor;
    return 0;
}

bool fanotify_end_adopted(Fanotify *f)
{
    if (f->adopted_fd >= 0 &&
        fanotify_mark(f->adopted_fd, FAN_MARK_FLUSH | FAN_MARK_FILESYSTEM, 0, AT_FDCWD, NULL) < 0)
        log_debug_errno(errno, "Cannot end the marks of the adopted group, ignoring: %m");
    return f->adopted_is_watched;
}

/* Returns false if the group has no mark of the filesystem. `mount_dev` is its device by
 * mountinfo. */
static bool has_mark(int group_fd, uint64_t mount_dev)
{
    _cleanup_free_ char *text = NULL;
    char path[64], line[64];

    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", group_fd);
    /* The kernel's dev_t has 20 bits for the minor number. */
    snprintf(line, sizeof(line), "\nfanotify sdev:%x ", major(mount_dev) << 20 | minor(mount_dev));
    return rooted_read(AT_FDCWD, path, FDINFO_SIZE_MAX, &text, NULL) < 0 || strstr(text, line);
}

/* Marks a filesystem. statfs(2) of vfat may read its whole allocation table, and the kernel calls
 * the same function for the mark. */
typedef struct MarkJob {
    DiskJob job;
    char *target;
    int group_fd;
    uint64_t mask;
    fsid_t fsid;
    int r;
} MarkJob;

static void mark_free(DiskJob *job)
{
    MarkJob *m = (MarkJob *)job;

    if (m->group_fd >= 0)
        close(m->group_fd);
    free(m->target);
    free(m);
}

static void mark_run(DiskJob *job)
{
    MarkJob *m = (MarkJob *)job;
    struct statfs sf;

    m->r = statfs(m->target, &sf) < 0 ? -errno : mark_filesystem(m->group_fd, m->mask, m->target);
    if (m->r >= 0 || fanotify_needs_descriptors(m->r))
        m->fsid = sf.f_fsid;
}

/* Marks the filesystem of the volume, and reads its fsid, also if only descriptor mode can record
 * it. Returns 0, or a negative errno: -ETIMEDOUT if the disk does not answer. */
static int mark_volume(int group_fd, uint64_t mask, const Volume *v, fsid_t *ret_fsid)
{
    MarkJob *m = calloc(1, sizeof(*m));
    int r;

    if (!m)
        return -ENOMEM;
    *m = (MarkJob){
            .job = {mark_run, mark_free},
            .target = strdup(v->target),
            .group_fd = fcntl(group_fd, F_DUPFD_CLOEXEC, 0),
            .mask = mask,
            .r = -ENOMEM,
    };
    if (!m->target || m->group_fd < 0) {
        r = m->target ? -errno : -ENOMEM;
        mark_free(&m->job);
        return r;
    }
    r = disk_call(volume_call_dev(v), &m->job);
    if (r < 0)
        return r;
    r = m->r;
    *ret_fsid = m->fsid;
    mark_free(&m->job);
    return r;
}

/* Returns a watch of a filesystem that is not mounted, or NULL. The number 0 is never given away,
 * because it also stands for objects that are known by their path alone. */
static Watch *find_gone(const Fanotify *f)
{
    for (size_t i = 0; i < f->n_watches; i++)
        if (f->watches[i].gone && f->watches[i].number != 0)
            return &f->watches[i];
    return NULL;
}

int fanotify_watch(Fanotify *f, const Volume *v, uint32_t number)
{
    Watch w = {
            .number = number,
            .st_dev = v->st_dev,
            .mount_dev = v->mount_dev,
            .call_dev = volume_call_dev(v),
            .mount_fd = -EBADF,
    };
    Watch *old = NULL;
    bool adopted;
    int r;

    for (size_t i = 0; i < f->n_watches; i++)
        if (!f->watches[i].gone && f->watches[i].st_dev == v->st_dev)
            return -EALREADY;
    adopted = f->adopted_fd >= 0 && has_mark(f->adopted_fd, v->mount_dev);
    r = grow_array(&f->watches, &f->allocated_watches, f->n_watches + 1, sizeof(Watch));
    if (r < 0)
        return r;
    r = mark_volume(f->handle_fd, f->mask, v, &w.fsid);
    if (fanotify_needs_descriptors(r)) {
        if (f->descriptor_fd < 0)
            f->descriptor_fd = fanotify_open_group(f->unlimited, true);
        r = f->descriptor_fd < 0 ? f->descriptor_fd
                                 : mark_volume(f->descriptor_fd, f->mask, v, &w.fsid);
        w.by_descriptor = true;
    }
    if (r < 0)
        return r;
    if (adopted) {
        f->adopted_is_watched = true;
        (void)fanotify_end_adopted(f); /* for a moment both groups have reported opens */
    }
    w.target = strdup(v->target);
    if (!w.target)
        return -ENOMEM;
    for (size_t i = 0; i < f->n_watches && !old; i++)
        if (f->watches[i].gone && memcmp(&f->watches[i].fsid, &w.fsid, sizeof(fsid_t)) == 0)
            old = &f->watches[i];
    /* A known filesystem is mounted again: objects that were logged before can be resolved. */
    if (old)
        w.number = old->number;
    else if (f->n_watches >= WATCHES_FEW)
        old = find_gone(f);
    if (old) {
        free(old->target);
        *old = w;
    } else
        f->watches[f->n_watches++] = w;
    return 0;
}

void fanotify_unwatch(Fanotify *f, uint64_t st_dev)
{
    for (size_t i = 0; i < f->n_watches; i++)
        if (!f->watches[i].gone && f->watches[i].st_dev == st_dev) {
            if (f->watches[i].mount_fd >= 0)
                close(f->watches[i].mount_fd);
            f->watches[i].mount_fd = -EBADF;
            f->watches[i].gone = true;
            return;
        }
}

bool fanotify_lost_mark(const Fanotify *f, uint64_t st_dev)
{
    for (size_t i = 0; i < f->n_watches; i++) {
        const Watch *w = &f->watches[i];

        if (!w->gone && w->st_dev == st_dev)
            return !has_mark(w->by_descriptor ? f->descriptor_fd : f->handle_fd, w->mount_dev);
    }
    return false;
}

static const Watch *watch_by_fsid(const Fanotify *f, const void *fsid)
{
    for (size_t i = 0; i < f->n_watches; i++)
        if (!f->watches[i].by_descriptor && !f->watches[i].gone &&
            memcmp(&f->watches[i].fsid, fsid, sizeof(fsid_t)) == 0)
            return &f->watches[i];
    return NULL;
}

static Watch *watch_by_number(const Fanotify *f, uint32_t number)
{
    for (size_t i = 0; i < f->n_watches; i++)
        if (f->watches[i].number == number)
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
    uint32_t number = 0;
    bool known = false;

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
    }
    close(m->fd);
    if (!known)
        return 0;
    o = (LoggedObject){
            .filesystem = number,
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

/* A fanotify_handler_t: keeps an event in descriptor mode for the next fanotify_drain(). */
static int take(void *arg, const LoggedObject *o, uint32_t pid, bool exec)
{
    Fanotify *f = arg;
    TakenEvent e = {
            .filesystem = o->filesystem,
            .pid = pid,
            .name_size = o->name_size,
            .directory = o->directory,
            .exec = exec,
    };

    memcpy(f->taken + f->taken_size, &e, sizeof(e));
    memcpy(f->taken + f->taken_size + sizeof(e), o->name, e.name_size + 1U);
    f->taken_size += sizeof(e) + e.name_size + 1;
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
    fit = (TAKEN_SIZE - f->taken_size) / (sizeof(TakenEvent) + PATH_MAX);
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

    for (size_t at = 0; at < f->taken_size && r >= 0; at += sizeof(e) + e.name_size + 1U) {
        memcpy(&e, f->taken + at, sizeof(e));
        r = s->handler(s->arg,
                       &(LoggedObject){
                               .filesystem = e.filesystem,
                               .name = f->taken + at + sizeof(e),
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

/* Opens the mount of a filesystem. Returns a descriptor, -ESTALE if another filesystem is mounted
 * there now, or another negative errno. */
static int open_target(const char *target, const fsid_t *fsid)
{
    _cleanup_close_ int fd = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    struct statfs sf;

    if (fd < 0 || fstatfs(fd, &sf) < 0)
        return -errno;
    return memcmp(&sf.f_fsid, fsid, sizeof(fsid_t)) != 0 ? -ESTALE : TAKE_FD(fd);
}

/* Opens the filesystem, and keeps the descriptor for the next objects. */
static int open_mount(Watch *w)
{
    if (w->mount_fd < 0)
        w->mount_fd = open_target(w->target, &w->fsid);
    return w->mount_fd;
}

void fanotify_resolve_done(Fanotify *f)
{
    for (size_t i = 0; i < f->n_watches; i++)
        if (f->watches[i].mount_fd >= 0) {
            close(f->watches[i].mount_fd);
            f->watches[i].mount_fd = -EBADF;
        }
}

int fanotify_can_resolve(const char *path)
{
    union {
        struct file_handle h;
        char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } x = {.h = {.handle_bytes = MAX_HANDLE_SZ}};
    _cleanup_close_ int fd = -EBADF;
    _cleanup_close_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int mount_id;

    if (dir < 0 || name_to_handle_at(dir, "", &x.h, &mount_id, AT_EMPTY_PATH) < 0)
        return -errno;
    fd = open_by_handle_at(dir, &x.h, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : 0;
}

/* Opens an object with O_PATH; mount_fd is any descriptor of its filesystem. A user may have
 * mounted another filesystem on the object since, which may hang, so no mount is entered. Returns a
 * descriptor or a negative errno. */
static int open_object(int mount_fd, const LoggedObject *o)
{
    union {
        struct file_handle h;
        char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } x;
    _cleanup_close_ int dir = -EBADF;

    x.h.handle_bytes = o->handle_size;
    x.h.handle_type = o->handle_type;
    memcpy(x.h.f_handle, o->handle, o->handle_size);
    dir = open_by_handle_at(mount_fd, &x.h, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    if (strcmp(o->name, ".") == 0 || o->name_size == 0)
        return TAKE_FD(dir);
    return open_beneath(dir, o->name);
}

/* Opens an object of a filesystem that may hang. */
typedef struct OpenJob {
    DiskJob job;
    char *target, *name;
    fsid_t fsid;
    LoggedObject object; /* its name and handle are copies */
    char handle[MAX_HANDLE_SZ];
    int fd; /* or a negative errno */
} OpenJob;

static void open_free(DiskJob *job)
{
    OpenJob *x = (OpenJob *)job;

    if (x->fd >= 0)
        close(x->fd);
    free(x->target);
    free(x->name);
    free(x);
}

static void open_run(DiskJob *job)
{
    OpenJob *x = (OpenJob *)job;
    _cleanup_close_ int mount_fd = -EBADF;

    if (x->object.handle_size == 0) {
        x->fd = open_without_symlinks(x->name);
        return;
    }
    mount_fd = open_target(x->target, &x->fsid);
    x->fd = mount_fd < 0 ? mount_fd : open_object(mount_fd, &x->object);
}

static int open_in_time(const Watch *w, const LoggedObject *o)
{
    OpenJob *x = calloc(1, sizeof(*x));
    int r;

    if (!x)
        return -ENOMEM;
    x->job = (DiskJob){open_run, open_free};
    x->target = strdup(w->target);
    x->name = strdup(o->name);
    x->fsid = w->fsid;
    x->fd = -ENOMEM;
    if (!x->target || !x->name) {
        open_free(&x->job);
        return -ENOMEM;
    }
    if (o->handle_size > 0)
        memcpy(x->handle, o->handle, o->handle_size);
    x->object = *o;
    x->object.name = x->name;
    x->object.handle = (const unsigned char *)x->handle;
    r = disk_call(w->call_dev, &x->job);
    if (r < 0)
        return r;
    r = x->fd;
    x->fd = -EBADF;
    open_free(&x->job);
    return r;
}

uint64_t fanotify_call_dev(const Fanotify *f, const LoggedObject *o)
{
    const Watch *w = watch_by_number(f, o->filesystem);

    return w ? w->call_dev : 0;
}

int fanotify_resolve(Fanotify *f, const LoggedObject *o, char *path, size_t size)
{
    Watch *w = watch_by_number(f, o->filesystem);
    _cleanup_close_ int fd = -EBADF;
    int r;

    if (o->filesystem == EVENT_LOG_REMOTE)
        return -EREMOTE;
    if ((!w && (o->handle_size > 0 || o->filesystem != 0)) || o->handle_size > MAX_HANDLE_SZ)
        return -ESTALE;
    if (w && w->call_dev != 0)
        fd = open_in_time(w, o);
    else if (o->handle_size == 0)
        fd = open_without_symlinks(o->name);
    else {
        r = open_mount(w);
        fd = r < 0 ? r : open_object(r, o);
    }
    if (fd < 0)
        return fd;
    r = fd_get_path(fd, path, size);
    return r < 0 ? r : TAKE_FD(fd);
}
