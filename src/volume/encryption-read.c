/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/rooted.h"
#include "device/block-device.h"
#include "volume/encryption.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define SYSFS_FILE_MAX 4096U

/* Reads the first line of /sys/class/block/DEVICE/dm/FILE into buf; "" if the file cannot be read,
 * for example because the device is not one of device-mapper. Returns 0 or -ENOMEM. */
static int read_mapped(int sys_fd, const char *device, const char *file, char *buf, size_t size)
{
    _cleanup_free_ char *text = NULL;
    char path[512];
    int r;

    buf[0] = 0;
    snprintf(path, sizeof(path), "/sys/class/block/%s/dm/%s", device, file);
    r = rooted_read(sys_fd, path, SYSFS_FILE_MAX, &text, NULL);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    snprintf(buf, size, "%.*s", (int)strcspn(text, "\n"), text);
    return 0;
}

/* A block_device_visit_t: keeps the strongest encryption of the stack. */
static int visit(void *arg, int sys_fd, const char *device)
{
    char uuid[ENCRYPTION_DEVICE_MAX], name[ENCRYPTION_DEVICE_MAX];
    Encryption *e = arg;
    EncryptionLevel level;
    int r;

    r = read_mapped(sys_fd, device, "uuid", uuid, sizeof(uuid));
    if (r >= 0)
        r = read_mapped(sys_fd, device, "name", name, sizeof(name));
    if (r < 0)
        return r;
    level = encryption_of_mapped(uuid, name);
    if (level > e->level) {
        e->level = level;
        memcpy(e->device, uuid, sizeof(uuid));
    }
    return 0;
}

int encryption_read_device(int sys_fd, uint64_t dev, Encryption *ret)
{
    Encryption e = {0};
    int r = block_device_visit_stack(sys_fd, dev, visit, &e);

    if (r == -ENOMEM)
        return r;
    *ret = e;
    return 0;
}

Encryption encryption_read_file(int fd, const Encryption *volume)
{
    Encryption e = *volume;
    struct statx st;

    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &st) >= 0 &&
        st.stx_attributes & STATX_ATTR_ENCRYPTED) {
        e.level = ENCRYPTION_USER;
        e.by_file = true;
    }
    return e;
}
