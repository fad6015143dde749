/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "volume/loop-file.h"

#include "base/rooted.h"
#include "device/block-device.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

typedef struct Search {
    const MountTable *mounts;
    bool of_user;
} Search;

static bool is_fuse_of_user(const Mount *m)
{
    static const char key[] = "user_id=";
    const char *p = m->super_options;

    if (strcmp(m->fstype, "fuse") != 0 && strncmp(m->fstype, "fuse.", 5) != 0 &&
        strcmp(m->fstype, "fuseblk") != 0)
        return false;
    for (; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (strncmp(p, key, strlen(key)) == 0)
            return strtoul(p + strlen(key), NULL, 10) != 0;
    return true;
}

/* Returns true if the file that sysfs names is local, and is the file of the loop device. The
 * number of its filesystem is in no mount if it is on a subvolume of btrfs or on an overlay. */
static bool is_local_file(const MountTable *mounts, int sys_fd, const char *name,
                          const struct loop_info64 *info)
{
    _cleanup_free_ char *file = NULL;
    char path[512];
    struct stat st;

    snprintf(path, sizeof(path), "/sys/class/block/%s/loop/backing_file", name);
    if (rooted_read(sys_fd, path, 8192, &file, NULL) < 0)
        return false;
    file[strcspn(file, "\n")] = 0;
    return mount_table_path_is_local(mounts, file) && lstat(file, &st) >= 0 &&
           st.st_dev == info->lo_device && st.st_ino == info->lo_inode;
}

/* A block_device_visit_t. */
static int visit(void *arg, int sys_fd, const char *name)
{
    Search *s = arg;
    _cleanup_close_ int fd = -EBADF;
    struct loop_info64 info = {0}; /* valgrind does not know the request */

    if (strncmp(name, "loop", 4) != 0 || strspn(name + 4, "0123456789") != strlen(name + 4))
        return 0; /* a partition of a loop device is followed to the whole device */
    fd = block_device_open(block_device_number(sys_fd, name));
    if (fd < 0 || ioctl(fd, LOOP_GET_STATUS64, &info) < 0)
        return 0; /* no access to devices, or the device was detached: nothing can be read either */
    for (size_t i = 0; i < s->mounts->n; i++) {
        const Mount *m = &s->mounts->mounts[i];

        if (makedev(m->major, m->minor) == info.lo_device) {
            s->of_user = s->of_user || is_fuse_of_user(m);
            return 0;
        }
    }
    s->of_user = s->of_user || !is_local_file(s->mounts, sys_fd, name, &info);
    return 0;
}

bool loop_file_is_of_user(const MountTable *mounts, uint64_t dev)
{
    Search s = {.mounts = mounts};

    (void)block_device_visit_stack(AT_FDCWD, dev, visit, &s);
    return s.of_user;
}
