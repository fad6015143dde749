/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Groups and marks, and the calls that make marks in another thread if the disk may hang. */

#include "observe/fanotify-internal.h"

#include "base/log.h"
#include "base/macros.h"
#include "base/rooted.h"
#include "system/disk-call.h"

#include <fcntl.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/sysmacros.h>

/* From this number of watches on, a new one replaces that of a filesystem that is not mounted. A
 * user who mounts one image after the other must not make the list of watches long. */
#define WATCHES_FEW 64U

/* The kernel writes a line of some 70 bytes for each mark. */
#define FDINFO_SIZE_MAX (1024U * 1024)

/* Flags of every group in either mode. */
#define GROUP_FLAGS (FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK)

/* How the kernel opens the file of an event, which it does inside read(2) of the group. Without
 * O_NONBLOCK it would wait for a lease of a user on that file (fcntl(2), F_SETLEASE), up to 45
 * seconds for each file. */
#define EVENT_FLAGS (O_RDONLY | O_NONBLOCK | O_NOATIME | O_CLOEXEC | O_LARGEFILE)

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

int fanotify_of_group(int handle_fd, bool unlimited, Fanotify **ret)
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
    int r = fd < 0 ? fd : fanotify_of_group(fd, unlimited, ret);

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

/* Returns a watch of a filesystem that is not mounted, or NULL. */
static Watch *find_gone(const Fanotify *f)
{
    for (size_t i = 0; i < f->n_watches; i++)
        if (f->watches[i].gone)
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

uint32_t fanotify_number(const Fanotify *f, uint64_t st_dev)
{
    for (size_t i = 0; i < f->n_watches; i++)
        if (!f->watches[i].gone && f->watches[i].st_dev == st_dev)
            return f->watches[i].number;
    return EVENT_LOG_UNWATCHED;
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
