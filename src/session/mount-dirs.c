/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Opening what a model names, whatever the path may have become: as replay/opening.c does for a
 * pack, which also knows the inode. */

#include "base/open.h"
#include "session/prefetch-internal.h"
#include "volume/mount-table.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

void mount_dirs_done(MountDirs *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->places[i].target);
        if (p->places[i].fd >= 0)
            close(p->places[i].fd);
    }
    free(p->places);
    *p = (MountDirs){0};
}

int mount_dirs_read(const char *root, MountDirs *ret)
{
    _cleanup_mount_table_ MountTable t = {0};
    _cleanup_mount_dirs_ MountDirs p = {0};
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
        p.places[p.n++] = (MountDir){
                .target = target,
                .dev = makedev(m->major, m->minor),
                .fd = open(target, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
        };
    }
    *ret = p;
    p = (MountDirs){0};
    return 0;
}

bool mount_dirs_contain(const MountDirs *p, uint64_t dev)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->places[i].dev == dev)
            return true;
    return false;
}

int mount_dirs_open_path(const MountDirs *p, const char *path, struct stat *ret)
{
    const MountDir *best = NULL;
    _cleanup_close_ int fd = -EBADF;
    size_t longest = 0;

    for (size_t i = 0; i < p->n; i++) {
        const MountDir *x = &p->places[i];
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
    fd = open_beneath(best->fd, *path ? path : ".");
    if (fd < 0)
        return fd;
    if (fstat(fd, ret) < 0)
        return -errno;
    if (!S_ISREG(ret->st_mode) && !S_ISDIR(ret->st_mode))
        return -EINVAL;
    return TAKE_FD(fd);
}
