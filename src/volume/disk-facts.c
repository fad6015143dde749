/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "volume/disk-facts.h"

#include "base/directory.h"
#include "base/rooted.h"
#include "device/block-device.h"

#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>

#define SYSFS_FILE_MAX 65536U

/* Returns the name in sysfs, such as "dm-0", of the device-mapper device that is called `wanted`,
 * or NULL. The caller frees it. */
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

uint64_t volume_source_number(int sys_fd, const char *source)
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
            block_device_sysfs_name(name);
    }
    return name ? block_device_number(sys_fd, name) : 0;
}

/* Returns the name in brackets, or the first word if there are no brackets: "none [mq-deadline]
 * bfq" gives "mq-deadline". */
static char *active_scheduler(const char *text)
{
    const char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;

    if (close)
        return strndup(open + 1, (size_t)(close - open) - 1);
    return strndup(text, strcspn(text, " \n"));
}

/* Returns the content of the file /sys/class/block/NAME/device/type ("SD", "MMC"), or NULL if there
 * is none. The caller frees it. */
static char *read_card_type(int sys_fd, const char *name)
{
    char path[512], *type = NULL;

    snprintf(path, sizeof(path), "/sys/class/block/%s/device/type", name);
    if (rooted_read(sys_fd, path, SYSFS_FILE_MAX, &type, NULL) >= 0)
        type[strcspn(type, "\n")] = 0;
    return type;
}

/* Returns true if the file `removable` of the block device ("1"), or of a bus device above it
 * ("removable": PCI devices behind an external port, USB devices), says so. `path` is the directory
 * of the block device in sysfs, and is shortened. */
static bool says_removable(int sys_fd, char *path, size_t size)
{
    for (char *end = path + strlen(path); end && end > path; end = strrchr(path, '/')) {
        _cleanup_free_ char *text = NULL;

        snprintf(end, size - (size_t)(end - path), "/removable");
        if (rooted_read(sys_fd, path, SYSFS_FILE_MAX, &text, NULL) >= 0 &&
            (strcmp(text, "1\n") == 0 || strcmp(text, "removable\n") == 0))
            return true;
        *end = 0;
    }
    return false;
}

/* Returns true if a component of the path is "usb" and a number: the USB bus of the device. */
static bool is_on_usb(const char *path)
{
    for (const char *p = path; (p = strstr(p, "/usb")); p++) {
        size_t digits = strspn(p + 4, "0123456789");

        if (digits > 0 && p[4 + digits] == '/')
            return true;
    }
    return false;
}

/* A block_device_visit_t: sets the bool to true if the device is removable. A USB stick chooses
 * itself whether its own file `removable` has the value 1, so the bus counts, too. */
static int note_removable(void *arg, int sys_fd, const char *name)
{
    _cleanup_free_ char *card_type = read_card_type(sys_fd, name);
    char link[BLOCK_DEVICE_LINK_MAX], path[BLOCK_DEVICE_LINK_MAX + 32];
    bool *removable = arg;
    const char *below;

    if ((card_type && strncmp(card_type, "SD", 2) == 0) || strncmp(name, "loop", 4) == 0)
        *removable = true;
    if (*removable || block_device_link(sys_fd, name, link, sizeof(link)) < 0)
        return 0;
    /* "../../devices/…" is relative to /sys/class/block. */
    below = strstr(link, "devices/");
    if (!below)
        return 0;
    snprintf(path, sizeof(path), "/sys/%s", below);
    *removable = is_on_usb(path) || says_removable(sys_fd, path, sizeof(path));
    return 0;
}

static void read_queue(int sys_fd, Volume *v)
{
    _cleanup_free_ char *scheduler = NULL, *card_type = read_card_type(sys_fd, v->disk);
    uint64_t rotational = 0;
    char path[512];

    snprintf(path, sizeof(path), "/sys/class/block/%s/queue/rotational", v->disk);
    if (rooted_read_u64(sys_fd, path, &rotational) >= 0)
        v->rotational = rotational != 0;
    snprintf(path, sizeof(path), "/sys/class/block/%s/queue/scheduler", v->disk);
    if (rooted_read(sys_fd, path, SYSFS_FILE_MAX, &scheduler, NULL) >= 0)
        v->scheduler = active_scheduler(scheduler);
    volume_set_class(v, volume_classify(v->disk, v->rotational, card_type));
}

int disk_facts_read(int sys_fd, Volume *v)
{
    uint64_t sectors;
    char path[64];

    volume_set_class(v, DEVICE_CLASS_UNKNOWN);
    if (v->block_dev != 0 && block_device_name(sys_fd, v->block_dev, &v->device) >= 0) {
        _cleanup_block_disk_ BlockDisk d = {0};

        if (block_device_find_disk(sys_fd, v->block_dev, &d) == -ENOMEM)
            return -ENOMEM;
        if (d.name && !d.several) {
            v->disk = TAKE_PTR(d.name);
            read_queue(sys_fd, v);
        }
        if (block_device_visit_stack(sys_fd, v->block_dev, note_removable, &v->removable) ==
            -ENOMEM)
            return -ENOMEM;
        if (encryption_read_device(sys_fd, v->block_dev, &v->encryption) < 0)
            return -ENOMEM;
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

/* Writes the path of read_ahead_kb of the only btrfs bdi to buf, or "" if there is no such bdi or
 * more than one. */
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
        buf[0] = 0; /* the value of another btrfs must not be used */
}

/* Writes the path of read_ahead_kb of a filesystem that has no bdi of its own number: a partition
 * has the bdi of its disk. Writes "" if the disk is unknown. */
static void find_disk_bdi(int sys_fd, const Volume *v, char *buf, size_t size)
{
    _cleanup_free_ char *number = NULL;
    char path[512];

    buf[0] = 0;
    snprintf(path, sizeof(path), "/sys/class/block/%s/dev", v->disk);
    if (!v->disk[0] || rooted_read(sys_fd, path, 32, &number, NULL) < 0)
        return;
    number[strcspn(number, "\n")] = 0;
    snprintf(buf, size, "/sys/class/bdi/%s/read_ahead_kb", number);
}

int read_ahead_find(int sys_fd, Volume *v)
{
    char path[512];

    /* The kernel reads ahead by the value in the bdi of the superblock. btrfs has a separate bdi
     * with its own number. */
    if (strcmp(v->fstype, "btrfs") != 0) {
        snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb", major(v->mount_dev),
                 minor(v->mount_dev));
        if (rooted_read_u64(sys_fd, path, &v->read_ahead_kb) < 0)
            find_disk_bdi(sys_fd, v, path, sizeof(path));
    } else {
        snprintf(path, sizeof(path), "/sys/fs/btrfs/%s/bdi/read_ahead_kb", v->uuid);
        if (!v->uuid[0] || rooted_read_u64(sys_fd, path, &v->read_ahead_kb) < 0)
            find_btrfs_bdi(sys_fd, path, sizeof(path)); /* before Linux 5.9 */
    }
    if (!path[0] || rooted_read_u64(sys_fd, path, &v->read_ahead_kb) < 0)
        return 0;
    v->read_ahead_path = strdup(path);
    return v->read_ahead_path ? 0 : -ENOMEM;
}
