/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/atomic-file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static int write_all(int fd, const char *p, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, p, size);

        if (n < 0) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        p += n;
        size -= (size_t)n;
    }
    return 0;
}

static int sync_directory_of(int dir_fd, const char *name)
{
    _cleanup_free_ char *dir = NULL;
    _cleanup_close_ int fd = -EBADF;
    const char *slash = strrchr(name, '/');

    if (slash) {
        dir = strndup(name, slash == name ? 1 : (size_t)(slash - name));
        if (!dir)
            return -ENOMEM;
    }
    fd = openat(dir_fd, dir ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return fsync(fd) < 0 ? -errno : 0;
}

int atomic_file_write(int dir_fd, const char *name, const void *data, size_t size, unsigned mode)
{
    _cleanup_free_ char *tmp = NULL;
    _cleanup_close_ int fd = -EBADF;
    int r;

    /* One fixed temporary name, ended by our pid. What a crash leaves behind goes at the next boot
     * (data/headstart.tmpfiles). */
    if (asprintf(&tmp, "%s.%d.tmp", name, (int)getpid()) < 0)
        return -ENOMEM;
    if (unlinkat(dir_fd, tmp, 0) < 0 && errno != ENOENT)
        return -errno;
    fd = openat(dir_fd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return -errno;

    r = write_all(fd, data, size);
    if (r >= 0 && fchmod(fd, mode) < 0)
        r = -errno;
    if (r >= 0 && fsync(fd) < 0)
        r = -errno;
    if (r >= 0 && renameat(dir_fd, tmp, dir_fd, name) < 0)
        r = -errno;
    if (r < 0) {
        unlinkat(dir_fd, tmp, 0);
        return r;
    }
    return sync_directory_of(dir_fd, name);
}

int output_file_write(const char *path, const void *data, size_t size, unsigned mode)
{
    _cleanup_free_ char *target = realpath(path, NULL);
    _cleanup_close_ int fd = -EBADF;
    struct stat st;

    if (!target || stat(target, &st) < 0 || S_ISREG(st.st_mode))
        return atomic_file_write(AT_FDCWD, target ? target : path, data, size, mode);
    fd = open(target, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? -errno : write_all(fd, data, size);
}

int file_read_whole(int dir_fd, const char *name, size_t max_size, char **ret, size_t *ret_size)
{
    _cleanup_free_ char *buf = NULL;
    _cleanup_close_ int fd = -EBADF;
    struct stat st;
    size_t size, n = 0;

    fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    if (!S_ISREG(st.st_mode))
        return -EBADMSG;
    if ((uint64_t)st.st_size > max_size)
        return -E2BIG;
    size = (size_t)st.st_size;

    buf = malloc(size + 1);
    if (!buf)
        return -ENOMEM;
    while (n < size) {
        ssize_t k = read(fd, buf + n, size - n);

        if (k < 0) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        if (k == 0)
            break;
        n += (size_t)k;
    }
    buf[n] = 0;
    *ret = TAKE_PTR(buf);
    *ret_size = n;
    return 0;
}

int make_directories(const char *path, unsigned mode)
{
    char p[PATH_MAX];
    size_t l = strlen(path);

    if (l == 0 || l >= sizeof(p))
        return -ENAMETOOLONG;
    memcpy(p, path, l + 1);
    while (l > 1 && p[l - 1] == '/')
        p[--l] = 0;

    for (size_t i = 1; i <= l; i++) {
        if (i < l && p[i] != '/')
            continue;
        char c = p[i];

        p[i] = 0;
        if (mkdir(p, i == l ? mode : 0755) < 0 && errno != EEXIST)
            return -errno;
        p[i] = c;
    }
    return 0;
}

int file_set_aside(int dir_fd, const char *name)
{
    _cleanup_free_ char *bad = NULL;

    if (asprintf(&bad, "%s.bad", name) < 0)
        return -ENOMEM;
    return renameat(dir_fd, name, dir_fd, bad) < 0 ? -errno : 0;
}
