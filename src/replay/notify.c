/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "replay/notify.h"

#include "base/log.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

void notify_manager(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    size_t l = path ? strlen(path) : 0;
    _cleanup_close_ int fd = -EBADF;

    if (l == 0 || l >= sizeof(sa.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(sa.sun_path, path, l);
    if (sa.sun_path[0] == '@')
        sa.sun_path[0] = 0; /* the abstract namespace */
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&sa,
                         (socklen_t)(offsetof(struct sockaddr_un, sun_path) + l)) < 0)
        log_debug_errno(errno, "Cannot notify the service manager, ignoring: %m");
}
