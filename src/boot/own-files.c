/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "boot/own-files.h"

#include "base/directory.h"
#include "base/macros.h"

#include "config-paths.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

void own_file_read_ahead(const char *path)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOATIME | O_NOFOLLOW);

    if (fd >= 0)
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
}

void own_units_read_ahead(const char *root)
{
    _cleanup_closedir_ DIR *dir = NULL;
    char path[PATH_MAX];
    const struct dirent *e;

    if ((size_t)snprintf(path, sizeof(path), "%s" HEADSTART_UNIT_DIR, root) >= sizeof(path) ||
        directory_open(AT_FDCWD, path, 0, &dir) < 0)
        return;
    while ((e = directory_next(dir)))
        if (strncmp(e->d_name, "headstart-", strlen("headstart-")) == 0 &&
            (size_t)snprintf(path, sizeof(path), "%s" HEADSTART_UNIT_DIR "/%s", root, e->d_name) <
                    sizeof(path))
            own_file_read_ahead(path);
}
