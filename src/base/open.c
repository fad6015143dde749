/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/open.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

int open_beneath(int dir_fd, const char *path)
{
    struct open_how how = {
            .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
            .resolve =
                    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    long fd;

    if (dir_fd < 0)
        return dir_fd;
    fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
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
