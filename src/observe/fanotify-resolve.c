/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Finds the paths of logged objects, in another thread if the disk may hang. */

#include "observe/fanotify-internal.h"

#include "base/macros.h"
#include "base/open.h"
#include "system/disk-call.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

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
