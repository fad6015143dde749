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
    char part[PATH_MAX];
    size_t above = strlen(path);
    Presence p;
    int fd;

    *ret_above = 0;
    if (above >= sizeof(part))
        return PRESENCE_UNKNOWN;
    memcpy(part, path, above + 1);
    for (bool whole = true;; whole = false) {
        fd = volume_open_path(volumes, root, above > 0 ? part : "/");
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
        while (above > 0 && part[above] != '/');
        part[above] = 0;
    }
    p = judge(volumes, fd, part);
    close(fd);
    *ret_above = above;
    return p;
}
