/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "volume/mount-table.h"

#include "base/rooted.h"

/* A user may have a thousand FUSE mounts (mount_max of fuse.conf(5)). The kernel writes mount
 * point, type and source of each, with up to four characters for each of their 4,095 bytes. */
#define MOUNTINFO_SIZE_MAX (64U * 1024 * 1024)

int mount_table_read(int root_fd, MountTable *ret)
{
    _cleanup_free_ char *text = NULL;
    int r = rooted_read(root_fd, "/proc/self/mountinfo", MOUNTINFO_SIZE_MAX, &text, NULL);

    return r < 0 ? r : mount_table_parse(text, ret, NULL);
}
