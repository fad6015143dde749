/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/take-over.h"

#include "base/log.h"
#include "record/handover.h"

#include <limits.h>

int take_over_recording(const char *run_dir, Observer *observer, Moment *ret_start)
{
    _cleanup_handover_ Handover h = HANDOVER_NULL;
    char path[PATH_MAX + sizeof(HANDOVER_SOCKET) + 1];
    int r;

    snprintf(path, sizeof(path), "%s/" HANDOVER_SOCKET, run_dir);
    r = handover_claim(path, &h);
    if (r >= 0)
        r = fanotify_adopt(h.fanotify_fd, h.by_descriptor, &observer->fanotify);
    if (r < 0) {
        if (r != -ENOENT && r != -ECONNREFUSED)
            log_warning_errno(r, "Cannot take over the recording since the mount of the root "
                                 "filesystem, starting anew: %m");
        return 0;
    }
    TAKE_FD(h.fanotify_fd);
    observer->connector_fd = TAKE_FD(h.connector_fd);
    *ret_start = h.start;
    return 1;
}
