/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "device/block-device.h"

#include "base/directory.h"
#include "base/rooted.h"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define DISK_DEPTH_MAX 16 /* devices stacked on one another */
#define SYSFS_FILE_MAX 65536U
#define SECTOR_BYTES   512U /* the unit of sysfs for every device */

#ifndef FS_IOC_GETFSUUID
struct fsuuid2 {
    __u8 len;
    __u8 uuid[16];
};
#define FS_IOC_GETFSUUID _IOR(0x15, 0, struct fsuuid2)
#endif

/* Returns the value of KEY=... in a uevent file, newly allocated, or NULL. */
static char *uevent_value(const char *text, const char *key)
{
    size_t l = strlen(key);

    for (const char *line = text; *line;) {
        const char *end = strchrnul(line, '\n');

        if ((size_t)(end - line) > l && memcmp(line, key, l) == 0 && line[l] == '=')
            return strndup(line + l + 1, (size_t)(end - line) - l - 1);
        line = *end ? end + 1 : end;
    }
    return NULL;
}

int block_device_name(int sys_fd, uint64_t dev, char **ret)
{
    _cleanup_free_ char *text = NULL;
    char path[64];
    int r;

    snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/uevent", major(dev), minor(dev));
    r = rooted_read(sys_fd, path, SYSFS_FILE_MAX, &text, NULL);
    if (r < 0)
        return r;
    *ret = uevent_value(text, "DEVNAME");
    return *ret ? 0 : -ENODATA;
}

uint64_t block_device_number(int sys_fd, const char *sysfs_name)
{
    _cleanup_free_ char *text = NULL;
    char path[512], *colon, *end;
    unsigned long maj, min;

    snprintf(path, sizeof(path), "/sys/class/block/%s/dev", sysfs_name);
    if (rooted_read(sys_fd, path, SYSFS_FILE_MAX, &text, NULL) < 0)
        return 0;
    maj = strtoul(text, &colon, 10);
    if (colon == text || *colon != ':')
        return 0;
    min = strtoul(colon + 1, &end, 10);
    if (end == colon + 1 || (*end && *end != '\n'))
        return 0;
    return makedev(maj, min);
}

int block_device_link(int sys_fd, const char *sysfs_name, char *buf, size_t size)
{
    _cleanup_close_ int dir = rooted_open(sys_fd, "/sys/class/block", O_PATH | O_DIRECTORY);
    ssize_t n;

    if (dir < 0)
        return dir;
    n = readlinkat(dir, sysfs_name, buf, size);
    if (n < 0)
        return -errno;
    if ((size_t)n >= size)
        return -ENAMETOOLONG;
    buf[n] = 0;
    return 0;
}

void block_device_sysfs_name(char *name)
{
    for (; *name; name++)
        if (*name == '/')
            *name = '!';
}

int block_device_open(uint64_t dev)
{
    _cleanup_free_ char *name = NULL;
    _cleanup_close_ int fd = -EBADF;
    char path[4096];
    struct stat st;
    int r;

    if (dev == 0)
        return -ENXIO;
    r = block_device_name(AT_FDCWD, dev, &name);
    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "/dev/%s", name);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISBLK(st.st_mode) || st.st_rdev != dev)
        return -ENXIO;
    return TAKE_FD(fd);
}

/* Returns the number of entries of a directory of sysfs. *ret is the name that sorts first, if
 * there is one. */
static int count_entries(int sys_fd, const char *path, char **ret)
{
    _cleanup_free_ char *name = NULL;
    _cleanup_closedir_ DIR *d = NULL;
    int n = 0, r = directory_from_fd(rooted_open(sys_fd, path, O_RDONLY | O_DIRECTORY), &d);

    if (r < 0)
        return r;
    for (const struct dirent *e; (e = directory_next(d));)
        if (n++ == 0 || strcmp(e->d_name, name) < 0) {
            free(name);
            name = strdup(e->d_name);
            if (!name)
                return -ENOMEM;
        }
    *ret = TAKE_PTR(name);
    return n;
}

/* Returns the name of the disk of a partition. It is the name of the parent directory, because
 * /sys/class/block/NAME is a link to .../block/DISK/NAME. Returns NULL if `name` is a whole
 * disk. */
static char *disk_of_partition(int sys_fd, const char *name)
{
    char path[512], link[BLOCK_DEVICE_LINK_MAX];
    char *slash, *before;
    uint64_t number;

    snprintf(path, sizeof(path), "/sys/class/block/%s/partition", name);
    if (rooted_read_u64(sys_fd, path, &number) < 0 ||
        block_device_link(sys_fd, name, link, sizeof(link)) < 0)
        return NULL;
    slash = strrchr(link, '/');
    if (!slash)
        return NULL;
    *slash = 0;
    before = strrchr(link, '/');
    return strdup(before ? before + 1 : link);
}

void block_disk_done(BlockDisk *d)
{
    free(d->name);
    *d = (BlockDisk){0};
}

/* Moves one step down the stack. With several devices below, it moves only if `first_of_several` is
 * set, to the device whose name sorts first. Returns 1 after a step, 0 at the bottom, or
 * -ENOMEM. */
static int step_down(int sys_fd, bool first_of_several, BlockDisk *d)
{
    char *below = disk_of_partition(sys_fd, d->name), path[512];
    uint64_t sectors;
    int n;

    if (below) {
        snprintf(path, sizeof(path), "/sys/class/block/%s/start", d->name);
        if (rooted_read_u64(sys_fd, path, &sectors) >= 0 && sectors <= UINT64_MAX / SECTOR_BYTES)
            d->offset += sectors * SECTOR_BYTES;
    } else {
        snprintf(path, sizeof(path), "/sys/class/block/%s/slaves", d->name);
        n = count_entries(sys_fd, path, &below);
        if (n == -ENOMEM)
            return n;
        d->several = n > 1;
        if (n != 1 && !(n > 1 && first_of_several)) {
            if (n > 0)
                free(below);
            return 0;
        }
        d->mapped = true;
    }
    free(d->name);
    d->name = below;
    return 1;
}

static int find_disk(int sys_fd, uint64_t dev, bool first_of_several, block_device_visit_t visit,
                     void *arg, BlockDisk *ret)
{
    _cleanup_block_disk_ BlockDisk d = {0};
    int r = block_device_name(sys_fd, dev, &d.name);

    if (r < 0)
        return r;
    block_device_sysfs_name(d.name);
    r = 1;
    for (int depth = 0; r > 0 && depth < DISK_DEPTH_MAX; depth++) {
        r = visit ? visit(arg, sys_fd, d.name) : 0;
        if (r >= 0)
            r = step_down(sys_fd, first_of_several, &d);
    }
    if (r < 0)
        return r;
    *ret = d;
    d = (BlockDisk){0};
    return 0;
}

int block_device_find_disk(int sys_fd, uint64_t dev, BlockDisk *ret)
{
    return find_disk(sys_fd, dev, false, NULL, NULL, ret);
}

int block_device_visit_stack(int sys_fd, uint64_t dev, block_device_visit_t visit, void *arg)
{
    _cleanup_block_disk_ BlockDisk d = {0};

    return find_disk(sys_fd, dev, true, visit, arg, &d);
}

/* Appends "KEY=VALUE", after a blank unless `buf` is empty. VALUE is the content of the first of
 * the files below /sys/class/block/NAME that is not blank; bytes that are not printable become "_".
 * Returns false if there is no such file. */
static bool append_attribute(int sys_fd, const char *name, const char *key,
                             const char *const *files, char *buf, size_t size)
{
    for (size_t i = 0; files[i]; i++) {
        _cleanup_free_ char *text = NULL;
        size_t n = strlen(buf), start = 0, end;
        char path[512];

        snprintf(path, sizeof(path), "/sys/class/block/%s/%s", name, files[i]);
        if (rooted_read(sys_fd, path, SYSFS_FILE_MAX, &text, NULL) < 0)
            continue;
        end = strlen(text);
        while (text[start] == ' ')
            start++;
        while (end > start && (text[end - 1] == '\n' || text[end - 1] == ' '))
            text[--end] = 0;
        if (end == start)
            continue;
        for (char *c = text + start; *c; c++)
            if (*c < 0x20 || *c >= 0x7f)
                *c = '_';
        snprintf(buf + n, size - n, "%s%s=%.128s", n > 0 ? " " : "", key, text + start);
        return true;
    }
    return false;
}

/* Writes the identity of the disk below the device to *ret. Without `by_name`, names of devices,
 * which differ from boot to boot, do not count. */
static int identify(int sys_fd, uint64_t dev, bool by_name, char **ret)
{
    static const char *const ids[] = {"wwid", "device/wwid", "device/cid", "loop/backing_file",
                                      NULL},
                             *const serials[] = {"serial", "device/serial", NULL},
                             *const models[] = {"device/model", "device/name", NULL},
                             *const sizes[] = {"size", NULL};
    _cleanup_block_disk_ BlockDisk d = {0};
    char text[512] = "";
    bool known;
    int r = find_disk(sys_fd, dev, by_name, NULL, NULL, &d);

    if (r < 0)
        return r;
    known = append_attribute(sys_fd, d.name, "id", ids, text, sizeof(text));
    known |= append_attribute(sys_fd, d.name, "serial", serials, text, sizeof(text));
    append_attribute(sys_fd, d.name, "model", models, text, sizeof(text));
    if (!known && by_name)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%sname=%.64s", *text ? " " : "",
                 d.name);
    append_attribute(sys_fd, d.name, "sectors", sizes, text, sizeof(text));
    if (!*text)
        return -ENODATA;
    *ret = strdup(text);
    return *ret ? 0 : -ENOMEM;
}

int block_device_identity(int sys_fd, uint64_t dev, char **ret)
{
    return identify(sys_fd, dev, true, ret);
}

int block_device_hardware(int sys_fd, uint64_t dev, char **ret)
{
    return identify(sys_fd, dev, false, ret);
}

int filesystem_uuid(int fd, uint8_t ret[static 16])
{
    struct btrfs_ioctl_fs_info_args info = {0};
    struct fsuuid2 u = {0};

    /* btrfs answers a call of its own, which is older than the common one. */
    if (ioctl(fd, BTRFS_IOC_FS_INFO, &info) >= 0) {
        memcpy(ret, info.fsid, sizeof(info.fsid));
        return 0;
    }
    if (ioctl(fd, FS_IOC_GETFSUUID, &u) < 0)
        return -errno;
    if (u.len != sizeof(u.uuid))
        return -EBADMSG;
    for (size_t i = 0; i < sizeof(u.uuid); i++)
        ret[i] = u.uuid[i];
    return 0;
}
