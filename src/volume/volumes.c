/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/rooted.h"
#include "volume/mountinfo.h"
#include "volume/volume.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <dirent.h>
#include <linux/fs.h>

#include "base/parse.h"

#define MOUNTINFO_SIZE_MAX (8U * 1024 * 1024)

static void volume_done(Volume *v)
{
    free(v->uuid);
    free(v->fstype);
    free(v->target);
    free(v->mountpoint);
    free(v->subvolume);
    free(v->device);
    free(v->disk);
    free(v->scheduler);
    free(v->read_ahead_path);
}

void volume_table_done(VolumeTable *t)
{
    for (size_t i = 0; i < t->n; i++)
        volume_done(&t->volumes[i]);
    free(t->volumes);
    *t = (VolumeTable){0};
}

const Volume *volume_by_dev(const VolumeTable *t, uint64_t st_dev)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->volumes[i].st_dev == st_dev)
            return &t->volumes[i];
    return NULL;
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
    r = rooted_read(sys_fd, path, 65536, &text, NULL);
    if (r < 0)
        return r;
    *ret = uevent_value(text, "DEVNAME");
    return *ret ? 0 : -ENODATA;
}

/* How many entries a directory below /sys has; the first one's name in *ret if there is one. */
static int count_entries(int sys_fd, const char *path, char **ret)
{
    _cleanup_free_ char *name = NULL;
    int fd = rooted_open(sys_fd, path, O_RDONLY | O_DIRECTORY), n = 0;
    DIR *d;

    if (fd < 0)
        return fd;
    d = fdopendir(fd);
    if (!d) {
        close(fd);
        return -ENOMEM;
    }
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.' && n++ == 0)
            name = strdup(e->d_name);
    closedir(d);
    if (n > 0 && !name)
        return -ENOMEM;
    *ret = TAKE_PTR(name);
    return n;
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

/* Down from the filesystem's device, through partitions and stacked devices (dm, md), to the disk at
 * the bottom; "" if there are several. Bounded, should sysfs ever hold a loop. */
static int find_disk(int sys_fd, const char *device, char **ret)
{
    _cleanup_free_ char *name = strdup(device);

    for (int depth = 0; name && depth < 16; depth++) {
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

static void read_disk_facts(int sys_fd, Volume *v)
{
    _cleanup_free_ char *scheduler = NULL, *mmc_type = NULL;
    uint64_t rotational = 0;
    char path[512];

    if (!v->disk[0])
        return;
    snprintf(path, sizeof(path), "/sys/class/block/%s/queue/rotational", v->disk);
    if (rooted_read_u64(sys_fd, path, &rotational) >= 0)
        v->rotational = rotational != 0;
    snprintf(path, sizeof(path), "/sys/class/block/%s/queue/scheduler", v->disk);
    if (rooted_read(sys_fd, path, 4096, &scheduler, NULL) >= 0) {
        char *s = active_scheduler(scheduler);
        if (s) {
            free(v->scheduler);
            v->scheduler = s;
        }
    }
    snprintf(path, sizeof(path), "/sys/class/block/%s/device/type", v->disk);
    if (rooted_read(sys_fd, path, 4096, &mmc_type, NULL) >= 0)
        mmc_type[strcspn(mmc_type, "\n")] = 0;
    v->device_class = volume_classify(v->disk, v->rotational, mmc_type);
}

static void read_read_ahead(int sys_fd, Volume *v, unsigned maj, unsigned min)
{
    char path[512];

    /* The bdi of the superblock counts: btrfs has one of its own under its anonymous number. */
    if (strcmp(v->fstype, "btrfs") == 0) {
        int fd = rooted_open(sys_fd, "/sys/class/bdi", O_RDONLY | O_DIRECTORY);
        DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
        char found[300] = "";
        int n = 0;

        for (struct dirent *e; d && (e = readdir(d));)
            if (strncmp(e->d_name, "btrfs-", 6) == 0) {
                snprintf(found, sizeof(found), "%s", e->d_name);
                n++;
            }
        if (d)
            closedir(d);
        if (n != 1)
            return; /* which one is ours cannot be told: better none than another's */
        snprintf(path, sizeof(path), "/sys/class/bdi/%s/read_ahead_kb", found);
    } else
        snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb", maj, min);
    if (rooted_read_u64(sys_fd, path, &v->read_ahead_kb) < 0)
        return;
    free(v->read_ahead_path);
    v->read_ahead_path = strdup(path);
}

static int parse_uuid(const char *text, uint8_t ret[16])
{
    uint8_t u[16] = {0};
    size_t n = 0;

    for (const char *p = text; *p; p++) {
        int digit;

        if (*p == '-')
            continue;
        digit = *p >= '0' && *p <= '9' ? *p - '0'
                : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10
                : *p >= 'A' && *p <= 'F' ? *p - 'A' + 10
                                         : -1;
        if (digit < 0 || n >= 32)
            return -EINVAL;
        u[n / 2] = (uint8_t)(u[n / 2] << 4 | digit);
        n++;
    }
    if (n == 8) { /* vfat: the serial, in the last four bytes */
        memmove(u + 12, u, 4);
        memset(u, 0, 4);
    } else if (n != 32)
        return -EINVAL;
    memcpy(ret, u, 16);
    return 0;
}

/* The UUID of what lies on the device, by libblkid. Only the superblock probe is run. */
static void read_uuid(Volume *v, int device_fd)
{
    blkid_probe pr = blkid_new_probe();
    const char *uuid = NULL;

    if (!pr)
        return;
    if (blkid_probe_set_device(pr, device_fd, 0, 0) == 0) {
        blkid_probe_enable_superblocks(pr, 1);
        blkid_probe_set_superblocks_flags(pr, BLKID_SUBLKS_UUID | BLKID_SUBLKS_TYPE);
        if (blkid_do_safeprobe(pr) == 0 && blkid_probe_lookup_value(pr, "UUID", &uuid, NULL) == 0 &&
            parse_uuid(uuid, v->uuid_bytes) >= 0) {
            char *copy = strdup(uuid);
            if (copy) {
                free(v->uuid);
                v->uuid = copy;
            }
        }
    }
    blkid_free_probe(pr);
}

int volume_open_device(const Volume *v)
{
    _cleanup_close_ int fd = -EBADF;
    char path[4096];
    struct stat st;

    if (!v->device[0] || v->block_dev == 0)
        return -ENXIO;
    snprintf(path, sizeof(path), "/dev/%s", v->device);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISBLK(st.st_mode) || st.st_rdev != v->block_dev)
        return -ENXIO;
    return TAKE_FD(fd);
}

/* The number in "…,KEY=NUMBER,…" of the options, or 0. */
static uint64_t option_number(const char *options, const char *key)
{
    size_t l = strlen(key);

    for (const char *p = options; *p;) {
        size_t n = strcspn(p, ",");

        if (n > l && strncmp(p, key, l) == 0 && p[l] == '=') {
            char digits[24] = "";
            uint64_t v = 0;

            snprintf(digits, sizeof(digits), "%.*s", (int)MIN(n - l - 1, (size_t)20), p + l + 1);
            return parse_u64(digits, &v) < 0 ? 0 : v;
        }
        p += n + (p[n] == ',');
    }
    return 0;
}

/* The device number that holds the filesystem: st_dev itself, or, where that is anonymous (btrfs),
 * the number of the device the mount names as its source. */
static uint64_t block_dev_of(const Mount *m)
{
    struct stat st;

    if (m->major != 0)
        return makedev(m->major, m->minor);
    if (m->source[0] == '/' && stat(m->source, &st) == 0 && S_ISBLK(st.st_mode))
        return st.st_rdev;
    return 0;
}

static int fill_volume(int sys_fd, const Mount *m, const char *prefix, Volume *v)
{
    bool btrfs = strcmp(m->fstype, "btrfs") == 0;
    _cleanup_close_ int fd = -EBADF;
    size_t l = strlen(prefix);
    uint64_t sectors = 0;
    char path[512];

    while (l > 0 && prefix[l - 1] == '/')
        l--;
    v->st_dev = makedev(m->major, m->minor);
    v->block_dev = block_dev_of(m);
    v->uuid = strdup("");
    v->fstype = strdup(m->fstype);
    v->target = strdup(m->target);
    v->mountpoint = strdup(m->target[l] ? m->target + l : "/");
    v->subvolume = strdup(btrfs ? m->root : "");
    v->subvolume_id = btrfs ? option_number(m->super_options, "subvolid") : 0;
    v->scheduler = strdup("");
    if (v->block_dev == 0 || device_name(sys_fd, v->block_dev, &v->device) < 0)
        v->device = strdup("");
    if (!v->uuid || !v->fstype || !v->target || !v->mountpoint || !v->subvolume || !v->scheduler ||
        !v->device)
        return -ENOMEM;
    if (!v->device[0] || find_disk(sys_fd, v->device, &v->disk) < 0)
        v->disk = strdup("");
    if (!v->disk)
        return -ENOMEM;

    read_disk_facts(sys_fd, v);
    read_read_ahead(sys_fd, v, m->major, m->minor);
    snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/size", major(v->block_dev),
             minor(v->block_dev));
    if (v->device[0] && rooted_read_u64(sys_fd, path, &sectors) >= 0)
        v->size_bytes = sectors * 512;
    /* A fixture has no devices behind it. */
    if (sys_fd == AT_FDCWD) {
        fd = volume_open_device(v);
        if (fd >= 0)
            read_uuid(v, fd);
    }
    return 0;
}

int volume_table_read(int sys_fd, const char *prefix, VolumeTable *ret)
{
    _cleanup_volume_table_ VolumeTable t = {0};
    _cleanup_mount_table_ MountTable mounts = {0};
    _cleanup_free_ char *text = NULL;
    _cleanup_free_ size_t *chosen = NULL;
    size_t n;
    int r;

    r = rooted_read(sys_fd, "/proc/self/mountinfo", MOUNTINFO_SIZE_MAX, &text, NULL);
    if (r < 0)
        return r;
    r = mount_table_parse(text, &mounts, NULL);
    if (r < 0)
        return r;
    r = mount_table_select(&mounts, prefix, &chosen, &n);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++) {
        r = grow_array(&t.volumes, &t.allocated, t.n + 1, sizeof(Volume));
        if (r < 0)
            return r;
        t.volumes[t.n] = (Volume){0};
        r = fill_volume(sys_fd, &mounts.mounts[chosen[i]], prefix, &t.volumes[t.n++]);
        if (r < 0)
            return r;
    }
    *ret = t;
    t = (VolumeTable){0};
    return 0;
}
