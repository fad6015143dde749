/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Finds the paths of logged objects, in another thread if the disk may hang. */

#include "observe/fanotify-internal.h"

#include "base/macros.h"
#include "base/open.h"
#include "system/disk-call.h"
#include "volume/mount-table.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

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
    mount_table_done(&f->mounts);
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

/* Finds the mount on which the path of an object lies now, and returns 0. A user may have mounted a
 * filesystem there that hangs, so each mount on the way must be local. The mount must show the
 * filesystem of the object, which another mount may hide now. Returns -EREMOTE or -ESTALE
 * otherwise, or the error of reading mountinfo. */
static int find_mount(Fanotify *f, const Watch *w, const char *path, const char **ret_target)
{
    const Mount *m;
    int r;

    if (f->mounts.n == 0) {
        r = mount_table_read(AT_FDCWD, &f->mounts);
        if (r < 0)
            return r;
    }
    if (!mount_table_path_is_local(&f->mounts, path))
        return -EREMOTE;
    m = mount_table_find(&f->mounts, path);
    if (!m || (w && makedev(m->major, m->minor) != w->mount_dev))
        return -ESTALE;
    *ret_target = m->target;
    return 0;
}

/* A file handle with room for any handle. */
typedef union Handle {
    struct file_handle h;
    char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
} Handle;

static bool has_handle(int fd, const LoggedObject *o)
{
    Handle x = {.h = {.handle_bytes = MAX_HANDLE_SZ}};
    int mount_id;

    return name_to_handle_at(fd, "", &x.h, &mount_id, AT_EMPTY_PATH) >= 0 &&
           x.h.handle_type == o->handle_type && x.h.handle_bytes == o->handle_size &&
           memcmp(x.h.f_handle, o->handle, o->handle_size) == 0;
}

/* Opens the object with its path below the mount `target`, and enters no other mount. Checks that
 * it is the object that was logged: by its handle if it has one, and by st_dev, which is 0 if any
 * filesystem will do. */
static int open_by_path(const char *target, const LoggedObject *o, uint64_t st_dev)
{
    _cleanup_close_ int dir = open(target, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -EBADF;
    const char *path = o->name + strlen(target);
    struct stat st;

    if (dir < 0)
        return -errno;
    path += strspn(path, "/");
    fd = open_beneath(dir, *path ? path : ".");
    if (fd < 0)
        return fd;
    if (st_dev != 0 && fstat(fd, &st) < 0)
        return -errno;
    if ((st_dev != 0 && st.st_dev != st_dev) || (o->handle_size > 0 && !has_handle(fd, o)))
        return -ESTALE;
    return TAKE_FD(fd);
}

/* Opens the object of a handle with O_PATH; mount_fd is any descriptor of its filesystem. */
static int open_by_handle(int mount_fd, const LoggedObject *o, int flags)
{
    Handle x;
    int fd;

    x.h.handle_bytes = o->handle_size;
    x.h.handle_type = o->handle_type;
    memcpy(x.h.f_handle, o->handle, o->handle_size);
    fd = open_by_handle_at(mount_fd, &x.h, O_PATH | O_CLOEXEC | flags);
    return fd < 0 ? -errno : fd;
}

/* Opens an object that is known by the handle of its directory and its name there. A user may have
 * mounted another filesystem on the object since, which may hang, so no mount is entered. */
static int open_in_directory(int mount_fd, const LoggedObject *o)
{
    _cleanup_close_ int dir = open_by_handle(mount_fd, o, O_DIRECTORY);

    if (dir < 0 || strcmp(o->name, ".") == 0 || o->name_size == 0)
        return TAKE_FD(dir);
    return open_beneath(dir, o->name);
}

/* Opens an object that is known by its own handle. Returns -ESTALE if the kernel does not know its
 * name, because the name is no longer in its cache. */
static int open_with_name(int mount_fd, const LoggedObject *o)
{
    _cleanup_close_ int fd = open_by_handle(mount_fd, o, 0);
    char path[PATH_MAX];
    int r = fd < 0 ? fd : fd_get_path(fd, path, sizeof(path));

    if (r < 0)
        return r;
    return strcmp(path, "/") == 0 && !o->directory ? -ESTALE : TAKE_FD(fd);
}

/* Where an object is looked for. */
typedef struct Place {
    const char *path_target; /* the mount on which its path lies; NULL: it is not looked up */
    const char *target;      /* the mount of its filesystem; NULL: the filesystem is not watched */
    fsid_t fsid;
    uint64_t st_dev;
} Place;

/* Opens an object. `mount_fd` is a descriptor of p->target, or a negative errno. The path of an
 * object is the last means: it may be that in another mount namespace. */
static int open_object(const Place *p, int mount_fd, const LoggedObject *o)
{
    int fd = mount_fd;

    if (!logged_object_has_path(o))
        return mount_fd < 0 ? mount_fd : open_in_directory(mount_fd, o);
    if (mount_fd >= 0 && o->handle_size > 0)
        fd = open_with_name(mount_fd, o);
    return fd < 0 && p->path_target ? open_by_path(p->path_target, o, p->st_dev) : fd;
}

/* Opens an object of a filesystem that may hang. */
typedef struct OpenJob {
    DiskJob job;
    Place place; /* its strings are copies */
    char *path_target, *target, *name;
    LoggedObject object; /* its name and handle are copies */
    char handle[MAX_HANDLE_SZ];
    int fd; /* or a negative errno */
} OpenJob;

static void open_free(DiskJob *job)
{
    OpenJob *x = (OpenJob *)job;

    if (x->fd >= 0)
        close(x->fd);
    free(x->path_target);
    free(x->target);
    free(x->name);
    free(x);
}

static void open_run(DiskJob *job)
{
    OpenJob *x = (OpenJob *)job;
    _cleanup_close_ int mount_fd = -EBADF;

    if (x->object.handle_size > 0)
        mount_fd = open_target(x->target, &x->place.fsid);
    x->fd = open_object(&x->place, mount_fd, &x->object);
}

static int open_in_time(uint64_t call_dev, const Place *p, const LoggedObject *o)
{
    OpenJob *x = calloc(1, sizeof(*x));
    int r;

    if (!x)
        return -ENOMEM;
    x->job = (DiskJob){open_run, open_free, 0};
    x->place = *p;
    x->path_target = p->path_target ? strdup(p->path_target) : NULL;
    x->target = strdup(p->target);
    x->name = strdup(o->name);
    x->fd = -ENOMEM;
    if ((p->path_target && !x->path_target) || !x->target || !x->name) {
        open_free(&x->job);
        return -ENOMEM;
    }
    x->place.path_target = x->path_target;
    x->place.target = x->target;
    if (o->handle_size > 0)
        memcpy(x->handle, o->handle, o->handle_size);
    x->object = *o;
    x->object.name = x->name;
    x->object.handle = (const unsigned char *)x->handle;
    r = disk_call(call_dev, &x->job);
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

static int open_now(Fanotify *f, Watch *w, Place *p, const LoggedObject *o)
{
    int fd = open_object(p, w && o->handle_size > 0 ? open_mount(w) : -ESTALE, o);

    if (fd >= 0 || !logged_object_has_path(o))
        return fd;
    fd = find_mount(f, w, o->name, &p->path_target);
    return fd < 0 ? fd : open_by_path(p->path_target, o, p->st_dev);
}

int fanotify_resolve(Fanotify *f, const LoggedObject *o, char *path, size_t size)
{
    Watch *w = watch_by_number(f, o->filesystem);
    _cleanup_close_ int fd = -EBADF;
    Place p = {0};
    int r;

    if (o->filesystem == EVENT_LOG_REMOTE)
        return -EREMOTE;
    if ((!w && o->filesystem != EVENT_LOG_UNWATCHED) || o->handle_size > MAX_HANDLE_SZ)
        return -ESTALE;
    if (w)
        p = (Place){NULL, w->target, w->fsid, w->st_dev};
    if (w && w->call_dev != 0) {
        if (logged_object_has_path(o))
            (void)find_mount(f, w, o->name, &p.path_target);
        fd = open_in_time(w->call_dev, &p, o);
    } else
        fd = open_now(f, w, &p, o);
    if (fd < 0)
        return fd;
    r = fd_get_path(fd, path, size);
    return r < 0 ? r : TAKE_FD(fd);
}
