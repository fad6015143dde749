/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Opening what a model names, whatever the path may have become: as replay/opening.c does for a
 * pack, which also knows the inode. */

#include "session/resident-internal.h"
#include "volume/mount-table.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define ENTRIES_BYTES_MAX (64U * 1024 * 1024) /* of one directory */
/* Whose inodes are brought in, of one directory; and sorted by inode, of one answer (which holds
 * 32768 / 24 at most). */
#define ENTRIES_LOOKED_UP_MAX 4096U
#define ENTRIES_AT_ONCE       1366U

void places_done(Places *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->places[i].target);
        if (p->places[i].fd >= 0)
            close(p->places[i].fd);
    }
    free(p->places);
    *p = (Places){0};
}

int places_read(const char *root, Places *ret)
{
    _cleanup_mount_table_ MountTable t = {0};
    _cleanup_places_ Places p = {0};
    _cleanup_free_ size_t *chosen = NULL;
    size_t n;
    int r;

    r = mount_table_read(AT_FDCWD, &t);
    if (r >= 0)
        r = mount_table_select(&t, root, &chosen, &n);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++) {
        const Mount *m = &t.mounts[chosen[i]];
        char *target = strdup(m->target);

        r = grow_array(&p.places, &p.allocated, p.n + 1, sizeof(*p.places));
        if (r < 0 || !target) {
            free(target);
            return -ENOMEM;
        }
        p.places[p.n++] = (Place){
                .target = target,
                .dev = makedev(m->major, m->minor),
                .fd = open(target, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
        };
    }
    *ret = p;
    p = (Places){0};
    return 0;
}

bool places_have(const Places *p, uint64_t dev)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->places[i].dev == dev)
            return true;
    return false;
}

int places_find(const Places *p, const char *path, struct stat *ret)
{
    struct open_how how = {
            .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
            .resolve =
                    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    const Place *best = NULL;
    _cleanup_close_ int fd = -EBADF;
    size_t longest = 0;

    for (size_t i = 0; i < p->n; i++) {
        const Place *x = &p->places[i];
        size_t l = strlen(x->target);

        while (l > 0 && x->target[l - 1] == '/')
            l--;
        if (l >= longest && x->fd >= 0 && path_is_below(path, x->target)) {
            longest = l;
            best = x;
        }
    }
    if (!best)
        return -EXDEV;
    path += longest;
    path += strspn(path, "/");
    fd = (int)syscall(SYS_openat2, best->fd, *path ? path : ".", &how, sizeof(how));
    if (fd < 0 || fstat(fd, ret) < 0)
        return -errno;
    if (!S_ISREG(ret->st_mode) && !S_ISDIR(ret->st_mode))
        return -EINVAL;
    return TAKE_FD(fd);
}

int places_open(int path_fd, bool directory)
{
    int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (directory ? O_DIRECTORY : 0);
    char proc[64];
    int fd;

    snprintf(proc, sizeof(proc), "/proc/self/fd/%d", path_fd);
    fd = open(proc, flags | O_NOATIME);
    if (fd < 0 && errno == EPERM)
        fd = open(proc, flags);
    return fd < 0 ? -errno : fd;
}

/* As getdents64(2) has it. */
typedef struct Entry {
    uint64_t inode;
    const char *name; /* borrowed from the buffer */
} Entry;

static int compare_entries(const void *a, const void *b)
{
    const Entry *x = a, *y = b;

    return (x->inode > y->inode) - (x->inode < y->inode);
}

/* The entries of one answer, "." and ".." left out. */
static size_t parse_entries(const char *buf, size_t size, Entry *ret, size_t max)
{
    size_t n = 0;

    for (size_t at = 0; n < max && at + offsetof(struct dirent64, d_name) < size;) {
        const struct dirent64 *e = (const struct dirent64 *)(buf + at);

        if (e->d_reclen == 0 || e->d_reclen > size - at)
            break;
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            ret[n++] = (Entry){e->d_ino, e->d_name};
        at += e->d_reclen;
    }
    return n;
}

void list_directory(int fd)
{
    struct open_how how = {
            .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
            .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    char buf[32768] __attribute__((aligned(8)));
    Entry entries[ENTRIES_AT_ONCE];
    size_t looked_up = 0;

    for (uint64_t sum = 0; sum < ENTRIES_BYTES_MAX;) {
        long size = syscall(SYS_getdents64, fd, buf, sizeof(buf));
        size_t n;

        if (size <= 0)
            return;
        sum += (uint64_t)size;
        n = parse_entries(buf, (size_t)size, entries,
                          MIN(ENTRIES_AT_ONCE, ENTRIES_LOOKED_UP_MAX - looked_up));
        if (n > 0)
            qsort(entries, n, sizeof(*entries), compare_entries);
        for (size_t i = 0; i < n; i++) {
            /* Not stat(2): a mount is not to be entered, whatever hangs there. */
            int place = (int)syscall(SYS_openat2, fd, entries[i].name, &how, sizeof(how));

            if (place >= 0)
                close(place);
        }
        looked_up += n;
    }
}
