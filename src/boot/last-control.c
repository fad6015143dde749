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

int last_control_write(int dir_fd, const char boot_id[static KERNEL_BOOT_ID_SIZE])
{
    char line[KERNEL_BOOT_ID_SIZE + 1];
    int n = snprintf(line, sizeof(line), "%s\n", boot_id);

    return atomic_file_write(dir_fd, LAST_CONTROL_FILE, line, (size_t)n, 0600);
}

int last_control_remove(int state_fd)
{
    return unlinkat(state_fd, LAST_CONTROL_FILE, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int last_control_read(int dir_fd, const char *path, char ret[static KERNEL_BOOT_ID_SIZE])
{
    _cleanup_close_ int fd =
            openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    char line[KERNEL_BOOT_ID_SIZE + 1];

    if (fd < 0)
        return -errno;
    if (read(fd, line, sizeof(line)) != KERNEL_BOOT_ID_SIZE || line[ID_LENGTH] != '\n')
        return -EBADMSG;
    line[ID_LENGTH] = 0;
    if (strspn(line, "0123456789abcdef") != ID_LENGTH)
        return -EBADMSG;
    memcpy(ret, line, KERNEL_BOOT_ID_SIZE);
    return 0;
}

bool last_control_is_other_boot(const char *pack, const char boot_id[static KERNEL_BOOT_ID_SIZE])
{
    const char *slash = strrchr(pack, '/');
    char path[PATH_MAX], noted[KERNEL_BOOT_ID_SIZE];
    int n = snprintf(path, sizeof(path), "%.*s" LAST_CONTROL_FILE,
                     slash ? (int)(slash - pack) + 1 : 0, pack);

    return n >= 0 && (size_t)n < sizeof(path) && last_control_read(AT_FDCWD, path, noted) >= 0 &&
           strcmp(noted, boot_id) != 0;
}
