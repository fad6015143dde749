/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "execute/marker.h"

#include "base/log.h"
#include "base/macros.h"

#include <fcntl.h>
#include <unistd.h>

void marker_set(const char *path, bool exists)
{
    _cleanup_close_ int fd = -EBADF;

    if (!path)
        return;
    if (!exists) {
        (void)unlink(path);
        return;
    }
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (fd < 0)
        log_debug_errno(errno, "Cannot create %s, ignoring: %m", path);
}
