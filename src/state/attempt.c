/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "state/attempt.h"

#include "base/atomic-file.h"
#include "system/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

void attempt_read_boot_id(char ret[static ATTEMPT_BOOT_ID_MAX])
{
    if (kernel_boot_id(AT_FDCWD, ret) < 0)
        memcpy(ret, "unknown", sizeof("unknown"));
}

/* Returns the points against the file, including those of the last try. Without a marker there are
 * none. A marker that cannot be parsed counts as one point.
 */
static unsigned read_points(int dir_fd, const char *marker, const char *boot_id)
{
    _cleanup_free_ char *text = NULL;
    char boot[ATTEMPT_BOOT_ID_MAX];
    unsigned points;
    size_t size;
    int r = file_read_whole(dir_fd, marker, 4096, &text, &size);

    if (r < 0)
        return r == -ENOENT ? 0 : 1;
    if (sscanf(text, "%63s %u", boot, &points) != 2 || points > 1000)
        return 1;
    return points + (strcmp(boot, boot_id) == 0 ? 2 : 1);
}

static int write_marker(int dir_fd, const char *marker, const char *boot_id, unsigned points)
{
    _cleanup_close_ int fd =
            openat(dir_fd, marker, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    char text[ATTEMPT_BOOT_ID_MAX + 16];
    int n = snprintf(text, sizeof(text), "%.63s %u\n", boot_id, points);

    if (fd < 0)
        return -errno;
    if (write(fd, text, (size_t)n) == n)
        return 0;
    n = errno ? -errno : -EIO;
    unlinkat(dir_fd, marker, 0);
    return n;
}

int attempt_begin(int dir_fd, const char *name, const char *boot_id, unsigned points)
{
    char marker[NAME_MAX + 1];
    unsigned found;

    if (snprintf(marker, sizeof(marker), "%s" ATTEMPT_SUFFIX, name) >= (int)sizeof(marker))
        return -ENAMETOOLONG;
    found = read_points(dir_fd, marker, boot_id);
    if (found < points)
        return write_marker(dir_fd, marker, boot_id, found);
    unlinkat(dir_fd, marker, 0);
    return 1;
}

void attempt_end(int dir_fd, const char *name)
{
    char marker[NAME_MAX + 1];

    if (snprintf(marker, sizeof(marker), "%s" ATTEMPT_SUFFIX, name) < (int)sizeof(marker))
        unlinkat(dir_fd, marker, 0);
}
