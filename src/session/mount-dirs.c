/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "session/mount-dirs.h"

#include "base/open.h"
#include "volume/loop-file.h"
#include "volume/mount-table.h"

#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>

void mount_dirs_done(MountDirs *m)
{
    for (size_t i = 0; i < m->n; i++)
        free(m->dirs[i].target);
    free(m->dirs);
    *m = (MountDirs){0};
}

static bool is_hung(const MountDir *d, const uint64_t *hung, size_t n_hung)
{
    for (size_t i = 0; i < n_hung; i++)
        if (hung[i] == d->dev || hung[i] == d->st_dev)
            return true;
    return false;
}

/* Returns the st_dev of the directory, on btrfs another number than that of the mount; 0 if it
 * cannot be opened. */
static uint64_t read_st_dev(const char *target)
{
    _cleanup_close_ int fd = open_without_symlinks(target);
    struct stat st;

    return fd >= 0 && fstat(fd, &st) >= 0 ? st.st_dev : 0;
}

static int add_mount(MountDirs *m, const Mount *mount, const uint64_t *hung, size_t n_hung)
{
    int r = grow_array(&m->dirs, &m->allocated, m->n + 1, sizeof(*m->dirs));
    MountDir *d;
    char *target;

    if (r < 0)
        return r;
    target = strdup(mount->target);
    if (!target)
        return -ENOMEM;
    d = &m->dirs[m->n++];
    *d = (MountDir){
            .target = target,
            .dev = makedev(mount->major, mount->minor),
            .st_dev = read_st_dev(target),
    };
    if (is_hung(d, hung, n_hung))
        d->dev = d->st_dev = 0; /* its metadata is not read either */
    return 0;
}

int mount_dirs_read(const char *root, const uint64_t *hung, size_t n_hung, MountDirs *ret)
{
    _cleanup_mount_table_ MountTable t = {0};
    _cleanup_mount_dirs_ MountDirs m = {0};
    _cleanup_free_ size_t *chosen = NULL;
    size_t n = 0;
    int r;

    r = mount_table_read(AT_FDCWD, &t);
    if (r >= 0)
        r = mount_table_select(&t, root, &chosen, &n);
    for (size_t i = 0; r >= 0 && i < n; i++) {
        const Mount *mount = &t.mounts[chosen[i]];

        /* Without its mount, open_beneath() refuses a path below it. */
        if (strcmp(mount->target, "/") == 0 ||
            !loop_file_is_of_user(&t, makedev(mount->major, mount->minor)))
            r = add_mount(&m, mount, hung, n_hung);
    }
    if (r < 0)
        return r;
    *ret = m;
    m = (MountDirs){0};
    return 0;
}

bool mount_dirs_contain(const MountDirs *m, uint64_t dev)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->dirs[i].dev == dev)
            return true;
    return false;
}

/* Finds the mount with the longest target that contains the path; NULL if there is none.
 * *ret_length: length of the target without trailing slashes. */
static const MountDir *find_mount(const MountDirs *m, const char *path, size_t *ret_length)
{
    const MountDir *best = NULL;
    size_t longest = 0;

    for (size_t i = 0; i < m->n; i++) {
        const MountDir *d = &m->dirs[i];
        size_t l = strlen(d->target);

        while (l > 0 && d->target[l - 1] == '/')
            l--;
        if (l >= longest && d->st_dev != 0 && path_is_below(path, d->target)) {
            longest = l;
            best = d;
        }
    }
    *ret_length = longest;
    return best;
}

uint64_t mount_dirs_dev(const MountDirs *m, const char *path)
{
    size_t l;
    const MountDir *d = find_mount(m, path, &l);

    return d ? d->dev : 0;
}

/* Opens the mount point with O_PATH, if the same filesystem is still mounted there. */
static int open_dir(const MountDir *d)
{
    _cleanup_close_ int fd = open_without_symlinks(d->target);
    struct stat st;

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    return st.st_dev == d->st_dev ? TAKE_FD(fd) : -ESTALE;
}

int mount_dirs_open_path(const MountDirs *m, const char *path, struct stat *ret)
{
    _cleanup_close_ int dir = -EBADF, fd = -EBADF;
    struct stat st;
    const MountDir *d;
    size_t l;

    d = find_mount(m, path, &l);
    if (!d)
        return -EXDEV;
    path += l;
    path += strspn(path, "/");
    dir = open_dir(d);
    if (dir < 0)
        return dir;
    fd = open_beneath(dir, *path ? path : ".");
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return -EINVAL;
    *ret = st;
    return TAKE_FD(fd);
}
