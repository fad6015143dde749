/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "volume/disk-facts.h"

#include "base/directory.h"
#include "base/rooted.h"

#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>

#define DISK_DEPTH_MAX 16 /* devices stacked on one another */
#define SYSFS_FILE_MAX 65536U

/* In sysfs a "/" of a device's name is a "!" (cciss/c0d0). */
static void to_sysfs_name(char *name)
{
    for (; *name; name++)
        if (*name == '/')
            *name = '!';
}

/* The value of KEY=… in a uevent file, newly allocated, or NULL. */
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

static int device_name(int sys_fd, uint64_t dev, char **ret)
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

/* How many entries a directory below /sys has; the first one's name in *ret if there is one. */
static int count_entries(int sys_fd, const char *path, char **ret)
{
    _cleanup_free_ char *name = NULL;
    _cleanup_closedir_ DIR *d = NULL;
    int n = 0, r = directory_from_fd(rooted_open(sys_fd, path, O_RDONLY | O_DIRECTORY), &d);

    if (r < 0)
        return r;
    for (const struct dirent *e; (e = directory_next(d));)
        if (n++ == 0)
            name = strdup(e->d_name);
    if (n > 0 && !name)
        return -ENOMEM;
    *ret = TAKE_PTR(name);
    return n;
}

/* The number of a device by its name in sysfs, or 0. */
static uint64_t number_by_name(int sys_fd, const char *name)
{
    _cleanup_free_ char *text = NULL;
    char path[512], *colon, *end;
    unsigned long maj, min;

    snprintf(path, sizeof(path), "/sys/class/block/%s/dev", name);
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

/* The name in sysfs of the device-mapper device that is called so, or NULL. */
static char *find_mapped(int sys_fd, const char *wanted)
{
    _cleanup_closedir_ DIR *d = NULL;
    char *found = NULL;

    if (directory_from_fd(rooted_open(sys_fd, "/sys/class/block", O_RDONLY | O_DIRECTORY), &d) < 0)
        return NULL;
    for (const struct dirent *e; !found && (e = directory_next(d));) {
        _cleanup_free_ char *name = NULL;
        char path[512];

        if (strncmp(e->d_name, "dm-", 3) != 0)
            continue;
        snprintf(path, sizeof(path), "/sys/class/block/%s/dm/name", e->d_name);
        if (rooted_read(sys_fd, path, SYSFS_FILE_MAX, &name, NULL) < 0)
            continue;
        name[strcspn(name, "\n")] = 0;
        if (strcmp(name, wanted) == 0)
            found = strdup(e->d_name);
    }
    return found;
}

uint64_t disk_number_of(int sys_fd, const char *source)
{
    static const char dev[] = "/dev/", mapper[] = "mapper/";
    _cleanup_free_ char *name = NULL;

    if (strncmp(source, dev, strlen(dev)) != 0)
        return 0;
    source += strlen(dev);
    if (strncmp(source, mapper, strlen(mapper)) == 0)
        name = find_mapped(sys_fd, source + strlen(mapper));
    else {
        name = strdup(source);
        if (name)
            to_sysfs_name(name);
    }
    return name ? number_by_name(sys_fd, name) : 0;
}

/* A partition's disk is the directory it lies in: /sys/class/block/NAME is a link to
 * …/block/DISK/NAME. NULL if `name` is a whole disk. */
static char *disk_of_partition(int sys_fd, const char *name)
{
    char path[512], link[4096];
    uint64_t number;
    ssize_t n;
    char *slash, *before;
    _cleanup_close_ int dir = -EBADF;

    snprintf(path, sizeof(path), "/sys/class/block/%s/partition", name);
    if (rooted_read_u64(sys_fd, path, &number) < 0)
        return NULL;
    dir = rooted_open(sys_fd, "/sys/class/block", O_PATH | O_DIRECTORY);
    if (dir < 0)
        return NULL;
    n = readlinkat(dir, name, link, sizeof(link) - 1);
    if (n <= 0)
        return NULL;
    link[n] = 0;
    slash = strrchr(link, '/');
    if (!slash)
        return NULL;
    *slash = 0;
    before = strrchr(link, '/');
    return strdup(before ? before + 1 : link);
}

/* Down from the filesystem's device, through partitions and stacked devices (dm, md), to the disk
 * at the bottom; "" if there are several. Bounded, should sysfs ever hold a loop. */
static int find_disk(int sys_fd, const char *device, char **ret)
{
    _cleanup_free_ char *name = strdup(device);

    if (name)
        to_sysfs_name(name);
    for (int depth = 0; name && depth < DISK_DEPTH_MAX; depth++) {
        char *below = disk_of_partition(sys_fd, name), path[512];
        int n = 1;

        if (!below) {
            snprintf(path, sizeof(path), "/sys/class/block/%s/slaves", name);
            n = count_entries(sys_fd, path, &below);
            if (n <= 0)
                break;
        }
        if (n > 1)
            below[0] = 0;
        free(name);
        name = below;
        if (n > 1)
            break;
    }
    if (!name)
        return -ENOMEM;
    *ret = TAKE_PTR(name);
    return 0;
}

/* "none [mq-deadline] bfq" -> "mq-deadline" */
static char *active_scheduler(const char *text)
{
    const char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;

    if (close)
        return strndup(open + 1, (size_t)(close - open) - 1);
    return strndup(text, strcspn(text, " \n"));
}

static void read_queue(int sys_fd, Volume *v)
{
    _cleanup_free_ char *scheduler = NULL, *mmc_type = NULL;
    uint64_t rotational = 0;
    char path[512];

    snprintf(path, sizeof(path), "/sys/class/block/%s/queue/rotational", v->disk);
    if (rooted_read_u64(sys_fd, path, &rotational) >= 0)
        v->rotational = rotational != 0;
    snprintf(path, sizeof(path), "/sys/class/block/%s/queue/scheduler", v->disk);
    if (rooted_read(sys_fd, path, SYSFS_FILE_MAX, &scheduler, NULL) >= 0)
        v->scheduler = active_scheduler(scheduler);
    snprintf(path, sizeof(path), "/sys/class/block/%s/device/type", v->disk);
    if (rooted_read(sys_fd, path, SYSFS_FILE_MAX, &mmc_type, NULL) >= 0)
        mmc_type[strcspn(mmc_type, "\n")] = 0;
    v->device_class = volume_classify(v->disk, v->rotational, mmc_type);
}

int disk_facts_read(int sys_fd, Volume *v)
{
    uint64_t sectors;
    char path[64];

    if (v->block_dev != 0 && device_name(sys_fd, v->block_dev, &v->device) >= 0) {
        if (find_disk(sys_fd, v->device, &v->disk) < 0)
            return -ENOMEM;
        if (v->disk[0])
            read_queue(sys_fd, v);
        snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/size", major(v->block_dev),
                 minor(v->block_dev));
        if (rooted_read_u64(sys_fd, path, &sectors) >= 0 && sectors <= UINT64_MAX / 512)
            v->size_bytes = sectors * 512;
    }
    if (!v->device)
        v->device = strdup("");
    if (!v->disk)
        v->disk = strdup("");
    if (!v->scheduler)
        v->scheduler = strdup("");
    return v->device && v->disk && v->scheduler ? 0 : -ENOMEM;
}

/* The only bdi of a btrfs there is, into buf; "" if there are several. */
static void find_btrfs_bdi(int sys_fd, char *buf, size_t size)
{
    _cleanup_closedir_ DIR *d = NULL;
    int n = 0;

    buf[0] = 0;
    if (directory_from_fd(rooted_open(sys_fd, "/sys/class/bdi", O_RDONLY | O_DIRECTORY), &d) < 0)
        return;
    for (const struct dirent *e; (e = directory_next(d));)
        if (strncmp(e->d_name, "btrfs-", 6) == 0 && n++ == 0)
            snprintf(buf, size, "/sys/class/bdi/%s/read_ahead_kb", e->d_name);
    if (n > 1)
        buf[0] = 0; /* which one is ours cannot be told: better none than another's */
}

int read_ahead_find(int sys_fd, Volume *v)
{
    char path[512];

    /* The bdi of the superblock counts: btrfs has one of its own, by a number of its own. */
    if (strcmp(v->fstype, "btrfs") != 0)
        snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb", major(v->mount_dev),
                 minor(v->mount_dev));
    else {
        snprintf(path, sizeof(path), "/sys/fs/btrfs/%s/bdi/read_ahead_kb", v->uuid);
        if (!v->uuid[0] || rooted_read_u64(sys_fd, path, &v->read_ahead_kb) < 0)
            find_btrfs_bdi(sys_fd, path, sizeof(path)); /* before Linux 5.9 */
    }
    if (!path[0] || rooted_read_u64(sys_fd, path, &v->read_ahead_kb) < 0)
        return 0;
    v->read_ahead_path = strdup(path);
    return v->read_ahead_path ? 0 : -ENOMEM;
}
