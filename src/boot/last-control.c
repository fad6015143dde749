/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "boot/last-control.h"

#include "base/atomic-file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ID_LENGTH (KERNEL_BOOT_ID_SIZE - 1)

int last_control_write(int state_fd, const char boot_id[static KERNEL_BOOT_ID_SIZE])
{
    char line[KERNEL_BOOT_ID_SIZE + 1];
    int n = snprintf(line, sizeof(line), "%s\n", boot_id);

    return atomic_file_write(state_fd, LAST_CONTROL_FILE, line, (size_t)n, 0600);
}

int last_control_remove(int state_fd)
{
    return unlinkat(state_fd, LAST_CONTROL_FILE, 0) < 0 && errno != ENOENT ? -errno : 0;
}

bool last_control_is_other_boot(const char *pack, const char boot_id[static KERNEL_BOOT_ID_SIZE])
{
    const char *slash = strrchr(pack, '/');
    _cleanup_close_ int fd = -EBADF;
    char path[PATH_MAX], line[KERNEL_BOOT_ID_SIZE + 1];
    int n = snprintf(path, sizeof(path), "%.*s" LAST_CONTROL_FILE,
                     slash ? (int)(slash - pack) + 1 : 0, pack);

    if (n < 0 || (size_t)n >= sizeof(path))
        return false;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || read(fd, line, sizeof(line)) != KERNEL_BOOT_ID_SIZE || line[ID_LENGTH] != '\n')
        return false;
    line[ID_LENGTH] = 0;
    return strspn(line, "0123456789abcdef") == ID_LENGTH && strcmp(line, boot_id) != 0;
}
