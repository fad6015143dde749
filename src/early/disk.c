/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "early/disk.h"

#include "base/macros.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

int early_disk_attribute(int root_fd, const char *group, const char *name,
                         char ret[static PATH_MAX])
{
    static const char *const places[] = {"", "../"};
    char path[128];
    struct stat st;

    if (fstat(root_fd, &st) < 0)
        return -errno;
    for (size_t i = 0; i < ELEMENTSOF(places); i++) {
        snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s%s/%s", major(st.st_dev),
                 minor(st.st_dev), places[i], group, name);
        if (realpath(path, ret))
            return 0;
    }
    return -errno;
}

bool early_disk_rotates(int root_fd)
{
    _cleanup_close_ int fd = -EBADF;
    char path[PATH_MAX], value = 0;

    if (early_disk_attribute(root_fd, "queue", "rotational", path) < 0)
        return true;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 || read(fd, &value, 1) != 1 || value != '0';
}
