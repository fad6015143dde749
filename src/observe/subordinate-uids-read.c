/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/rooted.h"
#include "observe/subordinate-uids.h"

#include <fcntl.h>

#define ETC_FILE_MAX (1U << 20)

void subordinate_uids_read(const char *root, SubordinateUids *s)
{
    _cleanup_close_ int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);

    subordinate_uids_done(s);
    if (root_fd < 0)
        return;
    (void)rooted_read(root_fd, "/etc/subuid", ETC_FILE_MAX, &s->subuid, NULL);
    (void)rooted_read(root_fd, "/etc/passwd", ETC_FILE_MAX, &s->passwd, NULL);
}
