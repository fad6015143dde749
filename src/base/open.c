/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/open.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#define SYMLINKS_MAX 40U /* the limit of the kernel, too */

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20 /* since Linux 5.12 */
#endif

static int open_below(int dir_fd, const char *path, uint64_t resolve)
{
    struct open_how how = {
            .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
                       RESOLVE_NO_XDEV | resolve,
    };
    long fd;

    if (dir_fd < 0)
        return dir_fd;
    fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
    return fd < 0 ? -errno : (int)fd;
}

int open_beneath(int dir_fd, const char *path)
{
    return open_below(dir_fd, path, 0);
}

int open_beneath_cached(int dir_fd, const char *path)
{
    return open_below(dir_fd, path, RESOLVE_CACHED);
}

int open_without_symlinks(const char *path)
{
    struct open_how how = {
            .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
            .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

    return fd < 0 ? -errno : (int)fd;
}

const char *fd_proc_path(char buf[static FD_PROC_PATH_MAX], int fd)
{
    snprintf(buf, FD_PROC_PATH_MAX, "/proc/self/fd/%d", fd);
    return buf;
}

int fd_reopen(int fd, int flags)
{
    char proc[FD_PROC_PATH_MAX];
    int opened = open(fd_proc_path(proc, fd), flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    return opened < 0 ? -errno : opened;
}

int fd_reopen_noatime(int fd, int flags)
{
    int opened = fd_reopen(fd, flags | O_NOATIME);

    return opened == -EPERM ? fd_reopen(fd, flags) : opened;
}

int fd_get_path(int fd, char *path, size_t size)
{
    char proc[FD_PROC_PATH_MAX];
    ssize_t n = readlink(fd_proc_path(proc, fd), path, size - 1);

    if (n < 0)
        return -errno;
    if ((size_t)n >= size - 1)
        return -ENAMETOOLONG;
    path[n] = 0;
    return path[0] == '/' ? 0 : -ESTALE;
}

bool output_is_trusted(const struct stat *dir, const struct stat *file)
{
    if (!(dir->st_mode & S_ISVTX) || !(dir->st_mode & S_IWOTH))
        return true;
    return file->st_uid == geteuid() || file->st_uid == dir->st_uid;
}

static bool is_on_procfs(int fd)
{
    struct statfs sf;

    return fstatfs(fd, &sf) >= 0 && sf.f_type == PROC_SUPER_MAGIC;
}

/* Reads the symlink and puts its target before `rest`. Returns the new path to walk, or NULL with
 * errno set. */
static char *expand_symlink(int link_fd, const char *rest)
{
    char target[PATH_MAX], *path;
    ssize_t n = readlinkat(link_fd, "", target, sizeof(target) - 1);

    if (n <= 0) {
        errno = n < 0 ? errno : ENOENT;
        return NULL;
    }
    target[n] = 0;
    if (asprintf(&path, "%s/%s", target, rest) < 0) {
        errno = ENOMEM;
        return NULL;
    }
    if (!*rest)
        path[strlen(path) - 1] = 0;
    return path;
}

/* Splits off the first component of *path: *name becomes the component, and *path what follows it.
 * Returns false if no component is left. */
static bool next_component(char **path, char **name)
{
    char *p = *path + strspn(*path, "/"), *end = strchrnul(p, '/');

    if (end == p)
        return false;
    *path = *end ? end + 1 : end;
    *end = 0;
    *name = p;
    return true;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Reads the attributes of the directory, and of the component unless `fd` is negative. Returns
 * false with errno set. */
static bool stat_both(int dir, struct stat *dir_st, int fd, struct stat *st)
{
    return fstat(dir, dir_st) >= 0 && (fd < 0 || fstat(fd, st) >= 0);
}

/* Returns true if a slash follows the component. next_component() has replaced it by a NUL, and
 * `rest` is what follows. */
static bool ends_in_slash(const char *name, const char *rest)
{
    return rest > name + strlen(name) && !is_dots(name);
}

/* Returns the error of open(2) with O_CREAT for a path with a slash at its end. `fd` is negative if
 * the component does not exist. */
static int error_of_slash(int fd, const struct stat *st)
{
    return fd >= 0 && S_ISREG(st->st_mode) ? -ENOTDIR : -EISDIR;
}

/* Continues the walk at the target of a symlink: replaces the path and, if the target is absolute,
 * the directory. Returns 0 or a negative errno. */
static int follow_symlink(int link_fd, int *dir, char **walk, char **rest)
{
    char *expanded = expand_symlink(link_fd, *rest);

    if (!expanded)
        return -errno;
    free(*walk);
    *rest = *walk = expanded;
    if (expanded[0] != '/')
        return 0;
    close(*dir);
    *dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *dir < 0 ? -errno : 0;
}

int open_output_place(const char *path, int *ret_dir_fd, char **ret_name)
{
    _cleanup_free_ char *walk = strdup(path);
    _cleanup_close_ int dir = -EBADF;
    unsigned n_symlinks = 0;
    char *rest = walk, *name;
    int r;

    if (!walk)
        return -ENOMEM;
    dir = open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    while (next_component(&rest, &name)) {
        _cleanup_close_ int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        bool last = rest[strspn(rest, "/")] == 0;
        struct stat dir_st, st;

        if (fd < 0 && !(errno == ENOENT && last))
            return -errno;
        if (!stat_both(dir, &dir_st, fd, &st))
            return -errno;
        if (last && ends_in_slash(name, rest))
            return error_of_slash(fd, &st);
        if (fd >= 0 && S_ISLNK(st.st_mode) && !(last && is_on_procfs(fd))) {
            if (!output_is_trusted(&dir_st, &st))
                return -EACCES;
            if (++n_symlinks > SYMLINKS_MAX)
                return -ELOOP;
            r = follow_symlink(fd, &dir, &walk, &rest);
            if (r < 0)
                return r;
            continue;
        }
        if (last && !is_dots(name)) {
            *ret_name = strdup(name);
            if (!*ret_name)
                return -ENOMEM;
            *ret_dir_fd = TAKE_FD(dir);
            return 0;
        }
        close(dir);
        dir = TAKE_FD(fd);
    }
    return -EISDIR;
}
