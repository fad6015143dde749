/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/atomic-file.h"

#include "base/directory.h"
#include "base/open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define CREATE_ATTEMPTS 10

static int write_all(int fd, const char *p, size_t size)
{
    while (size > 0) {
        ssize_t n = TEMP_FAILURE_RETRY(write(fd, p, size));

        if (n < 0)
            return -errno;
        p += n;
        size -= (size_t)n;
    }
    return 0;
}

/* Writes into a device, a FIFO or the target of a symlink in /proc/PID/fd (/dev/stdout). */
static int write_into(int dir_fd, const char *name, const void *data, size_t size)
{
    _cleanup_close_ int fd = openat(dir_fd, name, O_WRONLY | O_NOCTTY | O_CLOEXEC);

    return fd < 0 ? -errno : write_all(fd, data, size);
}

/* Takes the lock that a writer holds on its temporary file. When the writer dies, the kernel
 * releases the lock. Returns false if another writer holds it. */
static bool lock_temporary(int fd)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_OFD_SETLK, &l) >= 0;
}

/* Returns true if `entry` is NAME.PID.tmp. */
static bool is_temporary_of(const char *entry, const char *name)
{
    size_t l = strlen(name), digits;

    if (strncmp(entry, name, l) != 0 || entry[l] != '.')
        return false;
    entry += l + 1;
    digits = strspn(entry, "0123456789");
    return digits > 0 && strcmp(entry + digits, ".tmp") == 0;
}

void atomic_file_remove_temporaries(int dir_fd, const char *name)
{
    _cleanup_closedir_ DIR *d = NULL;

    if (directory_open(dir_fd, ".", 0, &d) < 0)
        return;
    for (const struct dirent *e; (e = directory_next(d));) {
        _cleanup_close_ int fd = -EBADF;

        if (!is_temporary_of(e->d_name, name))
            continue;
        fd = openat(dir_fd, e->d_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd >= 0 && lock_temporary(fd))
            unlinkat(dir_fd, e->d_name, 0);
    }
}

/* Creates and locks the temporary file. Returns a descriptor or a negative errno. */
static int create_temporary(int dir_fd, const char *name, unsigned mode)
{
    for (int attempt = 0; attempt < CREATE_ATTEMPTS; attempt++) {
        _cleanup_close_ int fd = -EBADF;
        struct stat st;

        if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
            return -errno;
        fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd < 0 && errno == EEXIST)
            continue;
        if (fd < 0)
            return -errno;
        /* Before the lock was taken, another writer may have removed the file as stale. */
        if (lock_temporary(fd) && fstat(fd, &st) == 0 && st.st_nlink > 0)
            return TAKE_FD(fd);
    }
    return -EBUSY;
}

/* Writes a file whose `name` has no slash. */
static int write_in(int dir_fd, const char *name, const void *data, size_t size, unsigned mode)
{
    _cleanup_free_ char *tmp = NULL;
    _cleanup_close_ int fd = -EBADF;
    int r;

    if (asprintf(&tmp, "%s.%d.tmp", name, (int)getpid()) < 0)
        return -ENOMEM;
    /* Errors do not keep the file from being written. */
    atomic_file_remove_temporaries(dir_fd, name);
    fd = create_temporary(dir_fd, tmp, mode);
    if (fd < 0)
        return fd;

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
    return fsync(dir_fd) < 0 ? -errno : 0;
}

/* Opens the directory of the path for reading and syncing. *ret_name becomes the last component of
 * the path. */
static int open_directory_of(int dir_fd, const char *path, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    _cleanup_free_ char *dir = NULL;
    int fd;

    if (slash) {
        dir = strndup(path, slash == path ? 1 : (size_t)(slash - path));
        if (!dir)
            return -ENOMEM;
    }
    fd = openat(dir_fd, dir ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    *ret_name = slash ? slash + 1 : path;
    return fd;
}

int atomic_file_write(int dir_fd, const char *path, const void *data, size_t size, unsigned mode)
{
    const char *name = path;
    _cleanup_close_ int fd = open_directory_of(dir_fd, path, &name);

    return fd < 0 ? fd : write_in(fd, name, data, size, mode);
}

int output_file_write(const char *path, const void *data, size_t size, unsigned mode)
{
    _cleanup_close_ int place = -EBADF, dir = -EBADF, fd = -EBADF;
    _cleanup_free_ char *name = NULL;
    struct stat dir_st, st;
    int r = open_output_place(path, &place, &name);

    if (r < 0)
        return r;
    dir = fd_reopen(place, O_RDONLY | O_DIRECTORY);
    if (dir < 0)
        return dir;
    fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        return -errno;
    if (fd < 0)
        return write_in(dir, name, data, size, mode);
    if (fstat(dir, &dir_st) < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!output_is_trusted(&dir_st, &st))
        return -EACCES;
    if (S_ISREG(st.st_mode))
        return write_in(dir, name, data, size, mode);
    return write_into(dir, name, data, size);
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
        ssize_t k = TEMP_FAILURE_RETRY(read(fd, buf + n, size - n));

        if (k < 0)
            return -errno;
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
