/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* An implementation of openat2(2), which qemu-user lacks up to version 9. tests/cross preloads it.
 * This implementation resolves the path one component after the other, and therefore has the races
 * that openat2(2) avoids: use it only in tests. */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINKS_MAX 40

/* Opens the directory below root_fd in which the last component of `path` lies. *ret_last becomes
 * the last component; it points into the buffer of `path`. */
static int walk(int root_fd, char *path, const struct open_how *how, char **ret_last)
{
    char rest[8192], link[4096], *const start = path;
    int links = 0, depth = 0, fd;

again:
    fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 3);
    for (depth = 0; fd >= 0;) {
        char *end;
        struct stat st;
        ssize_t n;
        int next;

        path = start + strspn(start, "/");
        *ret_last = path;
        end = path + strcspn(path, "/");
        snprintf(rest, sizeof(rest), "%s", end + strspn(end, "/"));
        *end = 0;
        if (strcmp(path, "..") == 0 && depth == 0) {
            if (how->resolve & RESOLVE_BENEATH)
                return close(fd), -EXDEV;
            strcpy(path, "."); /* the root's parent is the root */
        }
        if (fstatat(fd, *path ? path : ".", &st, AT_SYMLINK_NOFOLLOW) < 0)
            return *rest ? (close(fd), -errno) : fd;
        if (S_ISLNK(st.st_mode) && (*rest || !(how->flags & O_NOFOLLOW))) {
            if (how->resolve & RESOLVE_NO_SYMLINKS || ++links > LINKS_MAX)
                return close(fd), -ELOOP;
            n = readlinkat(fd, path, link, sizeof(link) - 1);
            if (n < 0)
                return close(fd), -errno;
            link[n] = 0;
            if (*link == '/' && how->resolve & RESOLVE_BENEATH)
                return close(fd), -EXDEV;
            snprintf(start, 8192, "%s/%s", link, rest);
            if (*link == '/') {
                close(fd);
                goto again;
            }
            continue;
        }
        if (!*rest)
            return fd;
        next = openat(fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        depth += strcmp(path, "..") == 0 ? -1 : strcmp(path, ".") != 0;
        close(fd);
        fd = next;
        strcpy(start, rest);
    }
    return -errno;
}

static long emulate(int dir_fd, const char *name, const struct open_how *how)
{
    char path[16384], *last;
    struct stat root, st;
    int at, root_fd, fd;

    if (!name || !how)
        return errno = EFAULT, -1;
    if (strlen(name) >= 4096)
        return errno = ENAMETOOLONG, -1;
    if (*name == '/' && how->resolve & RESOLVE_BENEATH)
        return errno = EXDEV, -1;
    root_fd = *name == '/' && !(how->resolve & RESOLVE_IN_ROOT)
                      ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)
                      : openat(dir_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return -1;
    strcpy(path, name);
    at = walk(root_fd, path, how, &last);
    if (at < 0) {
        close(root_fd);
        return errno = -at, -1;
    }
    fd = openat(at, *last ? last : ".", (int)how->flags | O_NOFOLLOW, (mode_t)how->mode);
    if (fd >= 0 && how->resolve & RESOLVE_NO_XDEV && fstat(root_fd, &root) == 0 &&
        fstat(fd, &st) == 0 && root.st_dev != st.st_dev) {
        close(fd);
        fd = -1;
        errno = EXDEV;
    }
    close(at);
    close(root_fd);
    return fd;
}

long syscall(long number, ...)
{
    static long (*real)(long, ...);
    long x[6];
    va_list list;

    va_start(list, number);
    for (size_t i = 0; i < 6; i++)
        x[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_openat2)
        return emulate((int)x[0], (const char *)x[1], (const struct open_how *)x[2]);
    if (!real)
        real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return real(number, x[0], x[1], x[2], x[3], x[4], x[5]);
}
