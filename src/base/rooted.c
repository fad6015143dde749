/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/rooted.h"

#include "base/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>

int rooted_open(int root_fd, const char *path, int flags)
{
    struct open_how how = {
            .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    long fd;

    if (root_fd == AT_FDCWD) {
        /* No path can leave "/", and RESOLVE_NO_MAGICLINKS would forbid links such as
         * /proc/self/exe. */
        fd = openat(AT_FDCWD, path, flags | O_CLOEXEC);
        return fd < 0 ? -errno : (int)fd;
    }
    fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
    return fd < 0 ? -errno : (int)fd;
}

int rooted_read(int root_fd, const char *path, size_t max_size, char **ret, size_t *ret_size)
{
    _cleanup_free_ char *buf = NULL;
    _cleanup_close_ int fd = -EBADF;
    size_t n = 0, allocated = 0;

    fd = rooted_open(root_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fd;
    for (;;) {
        if (grow_array(&buf, &allocated, n + 4096, 1) < 0)
            return -ENOMEM;
        ssize_t k = TEMP_FAILURE_RETRY(read(fd, buf + n, allocated - n - 1));
        if (k < 0)
            return -errno;
        if (k == 0)
            break;
        n += (size_t)k;
        if (n > max_size)
            return -E2BIG;
    }
    buf[n] = 0;
    *ret = TAKE_PTR(buf);
    if (ret_size)
        *ret_size = n;
    return 0;
}

int rooted_read_u64(int root_fd, const char *path, uint64_t *ret)
{
    _cleanup_free_ char *text = NULL;
    size_t n;
    int r = rooted_read(root_fd, path, 4096, &text, &n);

    if (r < 0)
        return r;
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        text[--n] = 0;
    r = parse_u64(text + strspn(text, " "), ret);
    return r < 0 ? -EBADMSG : 0;
}
