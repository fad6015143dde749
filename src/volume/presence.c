/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "volume/presence.h"

#include "base/directory.h"
#include "base/open.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Returns true if the directory has an entry, and false if it is empty or cannot be read. */
static bool has_entries(int dir_fd)
{
    _cleanup_closedir_ DIR *dir = NULL;

    return directory_from_fd(fd_reopen_noatime(dir_fd, O_RDONLY | O_DIRECTORY), &dir) >= 0 &&
           directory_next(dir);
}

/* Decides about a file that is missing. `fd` is the nearest existing object above the file, and
 * `above` is the path of this object below the root. */
static Presence judge(const VolumeTable *volumes, int fd, const char *above)
{
    struct statx st;

    if (strcmp(above, "/home") == 0)
        return PRESENCE_UNKNOWN;
    if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &st) < 0)
        return PRESENCE_UNKNOWN;
    /* The directory was replaced by another object, so everything below it is gone. */
    if (!S_ISDIR(st.stx_mode))
        return PRESENCE_GONE;
    if (st.stx_attributes & STATX_ATTR_ENCRYPTED)
        return PRESENCE_UNKNOWN;
    if (!volume_by_dev(volumes, makedev(st.stx_dev_major, st.stx_dev_minor)))
        return PRESENCE_UNKNOWN;
    return has_entries(fd) ? PRESENCE_GONE : PRESENCE_UNKNOWN;
}

Presence presence_find(const VolumeTable *volumes, const char *root, const char *path,
                       size_t *ret_above)
{
    char full[PATH_MAX];
    size_t l = strcmp(root, "/") == 0 ? 0 : strlen(root);
    size_t above = strlen(path);
    Presence p;
    int fd;

    *ret_above = 0;
    if (l + above >= sizeof(full))
        return PRESENCE_UNKNOWN;
    memcpy(full, root, l);
    memcpy(full + l, path, above + 1);
    for (size_t i = 0; i < volumes->n_automounts; i++)
        if (path_is_below(full, volumes->automounts[i]))
            return PRESENCE_UNKNOWN;
    for (bool whole = true;; whole = false) {
        fd = open_without_symlinks(above > 0 || l > 0 ? full : "/");
        if (fd >= 0 && whole) {
            close(fd);
            return PRESENCE_THERE;
        }
        if (fd >= 0)
            break;
        if ((fd != -ENOENT && fd != -ENOTDIR) || above == 0)
            return PRESENCE_UNKNOWN;
        do
            above--;
        while (above > 0 && path[above] != '/');
        full[l + above] = 0;
    }
    p = judge(volumes, fd, full + l);
    close(fd);
    *ret_above = above;
    return p;
}
