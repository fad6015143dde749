/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "replay/opening.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* the same on every architecture */
#endif

#define DESCRIPTORS_MAX   65536U
#define ENTRIES_BYTES_MAX (64U * 1024 * 1024) /* of one directory */

static ReplaySkip skip_of_errno(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ESTALE:
        return REPLAY_SKIP_GONE;
    case ELOOP:
    case EXDEV: /* a mount point, or an automount, by now */
    case ENXIO:
        return REPLAY_SKIP_TYPE;
    case EACCES:
    case EPERM:
        return REPLAY_SKIP_DENIED;
    default:
        return REPLAY_SKIP_ERROR;
    }
}

static bool is_planned(const PackFile *f, const struct stat *st)
{
    if (st->st_ino != le64toh(f->inode))
        return false;
    if (le16toh(f->flags) & PACK_FILE_DIRECTORY)
        return true;
    if (le16toh(f->flags) & PACK_FILE_VOLATILE)
        return true; /* reading past its end, should it have shrunk, reads nothing */
    return (uint64_t)st->st_size == le64toh(f->size) &&
           timespec_nsec(&st->st_mtim) == le64toh(f->mtime_nsec) &&
           timespec_nsec(&st->st_ctim) == le64toh(f->ctime_nsec);
}

int open_planned(int root_fd, const char *path, const PackFile *f, bool reading,
                 ReplaySkip *ret_why)
{
    struct open_how how = {
            .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
            .resolve =
                    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    bool directory = le16toh(f->flags) & PACK_FILE_DIRECTORY;
    int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (directory ? O_DIRECTORY : 0);
    _cleanup_close_ int place = -EBADF;
    char proc[64];
    struct stat st;
    int fd;

    place = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
    if (place < 0 || fstat(place, &st) < 0) {
        fd = -errno;
        *ret_why = skip_of_errno(errno);
        return fd;
    }
    if (directory ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode)) {
        *ret_why = REPLAY_SKIP_TYPE;
        return -EINVAL;
    }
    if (!is_planned(f, &st)) {
        *ret_why = REPLAY_SKIP_REPLACED;
        return -ESTALE;
    }
    if (!reading)
        return 0;
    snprintf(proc, sizeof(proc), "/proc/self/fd/%d", place);
    fd = open(proc, flags | O_NOATIME);
    if (fd < 0 && errno == EPERM)
        fd = open(proc, flags);
    if (fd < 0) {
        fd = -errno;
        *ret_why = skip_of_errno(errno);
    }
    return fd;
}

void touch_entries(int directory_fd)
{
    char buf[32768];

    for (uint64_t sum = 0; sum < ENTRIES_BYTES_MAX;) {
        long n = syscall(SYS_getdents64, directory_fd, buf, sizeof(buf));

        if (n <= 0)
            return;
        sum += (uint64_t)n;
    }
}

uint32_t descriptors_raise(uint64_t own, uint64_t wanted)
{
    uint64_t need = MIN(wanted + own, (uint64_t)DESCRIPTORS_MAX), may;
    struct rlimit l;

    if (getrlimit(RLIMIT_NOFILE, &l) < 0)
        return 2;
    if (l.rlim_cur < need) {
        rlim_t old = l.rlim_cur;

        l.rlim_cur = MIN((rlim_t)need, l.rlim_max);
        if (setrlimit(RLIMIT_NOFILE, &l) < 0)
            l.rlim_cur = old;
    }
    may = MIN((uint64_t)l.rlim_cur, (uint64_t)DESCRIPTORS_MAX);
    return may > own + 2 ? (uint32_t)(may - own) : 2;
}

bool is_cached(int fd, uint64_t offset, uint64_t length)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), range[2] = {offset, length};
    uint64_t counts[5] = {0}; /* cached, dirty, in writeback, evicted, evicted recently */
    struct stat st;

    if (length == 0 || syscall(SYS_cachestat, fd, range, counts, 0) < 0)
        return true;
    /* A file has no pages beyond its end. */
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        length = MIN(length, (uint64_t)st.st_size > offset ? (uint64_t)st.st_size - offset : 0);
    return counts[0] >= DIV_ROUND_UP(length, page);
}
