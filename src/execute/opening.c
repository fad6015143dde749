/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "execute/opening.h"

#include "base/open.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define DESCRIPTORS_MAX 65536U

static ReplaySkip skip_of_errno(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ESTALE:
        return REPLAY_SKIP_GONE;
    case ELOOP:
    case EXDEV: /* it is a mount point or an automount now */
    case ENXIO:
        return REPLAY_SKIP_TYPE;
    case EACCES:
    case EPERM:
        return REPLAY_SKIP_DENIED;
    default:
        return REPLAY_SKIP_ERROR;
    }
}

static mode_t planned_type(const PackFile *f)
{
    uint16_t flags = le16toh(f->flags);

    return flags & PACK_FILE_DIRECTORY ? S_IFDIR : flags & PACK_FILE_SYMLINK ? S_IFLNK : S_IFREG;
}

bool opening_is_planned(const PackFile *f, const struct stat *st)
{
    if ((st->st_mode & S_IFMT) != planned_type(f))
        return false;
    /* Many programs replace their state by a new file, and read that in the next session. Any size
     * is right: reading beyond the end of a shorter file reads nothing. */
    if (le16toh(f->flags) & PACK_FILE_VOLATILE)
        return true;
    if (st->st_ino != le64toh(f->inode))
        return false;
    if (le16toh(f->flags) & PACK_FILE_DIRECTORY)
        return true;
    return (uint64_t)st->st_size == le64toh(f->size) && !opening_was_written(f, st) &&
           timespec_nsec(&st->st_ctim) == le64toh(f->ctime_nsec);
}

bool opening_was_written(const PackFile *f, const struct stat *st)
{
    return timespec_nsec(&st->st_mtim) != le64toh(f->mtime_nsec);
}

int open_planned(int root_fd, const char *path, const PackFile *f, bool reading,
                 ReplaySkip *ret_why)
{
    bool directory = le16toh(f->flags) & PACK_FILE_DIRECTORY;
    _cleanup_close_ int path_fd = open_beneath(root_fd, path);
    struct stat st;
    int r;

    r = path_fd < 0 ? path_fd : fstat(path_fd, &st) < 0 ? -errno : 0;
    if (r < 0) {
        *ret_why = skip_of_errno(-r);
        return r;
    }
    if ((st.st_mode & S_IFMT) != planned_type(f)) {
        *ret_why = REPLAY_SKIP_TYPE;
        return -EINVAL;
    }
    if (!opening_is_planned(f, &st)) {
        *ret_why = REPLAY_SKIP_REPLACED;
        return -ESTALE;
    }
    if (!reading)
        return 0;
    r = fd_reopen_noatime(path_fd, O_RDONLY | (directory ? O_DIRECTORY : 0));
    if (r < 0)
        *ret_why = skip_of_errno(-r);
    return r;
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
