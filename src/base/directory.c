/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/directory.h"

#include "base/open.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#define ENTRIES_BYTES_MAX (64U * 1024 * 1024) /* limit for the entries of one directory */
#define ANSWER_BYTES      32768U
#define ANSWER_ENTRIES    (ANSWER_BYTES / 24U + 1) /* no entry is shorter than 24 bytes */

typedef struct Entry {
    uint64_t inode;
    const char *name; /* borrowed from the kernel's answer */
} Entry;

static bool is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

int directory_from_fd(int fd, DIR **ret)
{
    DIR *d;

    if (fd < 0)
        return fd;
    d = fdopendir(fd);
    if (!d) {
        int r = -errno;

        close(fd);
        return r;
    }
    *ret = d;
    return 0;
}

int directory_open(int dir_fd, const char *path, int flags, DIR **ret)
{
    int fd = openat(dir_fd, path, flags | O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : directory_from_fd(fd, ret);
}

const struct dirent *directory_next(DIR *d)
{
    const struct dirent *e;

    while ((e = readdir(d)) && is_dot(e->d_name))
        ;
    return e;
}

static int compare_entries(const void *a, const void *b)
{
    const Entry *x = a, *y = b;

    return (x->inode > y->inode) - (x->inode < y->inode);
}

/* Stores at most `max` entries of one answer in `ret`, without "." and "..", and returns their
 * number. */
static size_t parse_answer(const char *buf, size_t size, Entry *ret, size_t max)
{
    size_t n = 0;

    for (size_t at = 0; n < max && at + offsetof(struct dirent64, d_name) < size;) {
        const struct dirent64 *e = (const struct dirent64 *)(buf + at);

        if (e->d_reclen == 0 || e->d_reclen > size - at)
            break;
        if (!is_dot(e->d_name))
            ret[n++] = (Entry){e->d_ino, e->d_name};
        at += e->d_reclen;
    }
    return n;
}

void directory_read_ahead(int fd, size_t n_lookups, directory_access_t access, void *arg)
{
    char buf[ANSWER_BYTES] __attribute__((aligned(8)));
    Entry entries[ANSWER_ENTRIES];

    for (uint64_t sum = 0; sum < ENTRIES_BYTES_MAX;) {
        long size;
        size_t n;

        if (access && !access(arg))
            return;
        size = syscall(SYS_getdents64, fd, buf, sizeof(buf));
        if (size <= 0)
            return;
        sum += (uint64_t)size;
        n = parse_answer(buf, (size_t)size, entries, MIN(ANSWER_ENTRIES, n_lookups));
        if (n > 1)
            qsort(entries, n, sizeof(*entries), compare_entries);
        for (size_t i = 0; i < n; i++) {
            int entry;

            if (access && !access(arg))
                return;
            entry = open_beneath(fd, entries[i].name);
            if (entry >= 0)
                close(entry);
        }
        n_lookups -= n;
    }
}
