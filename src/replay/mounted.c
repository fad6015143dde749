/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "replay/mounted.h"

#include "base/directory.h"
#include "base/rooted.h"
#include "replay/superblock.h"
#include "volume/mount-table.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define CHUNK_MIN      (128U * 1024) /* the kernel's own default: always read as a whole */
#define CHUNK_MAX      (2U * 1024 * 1024)
#define DISK_DEPTH_MAX 16 /* devices stacked on one another */

#ifndef FS_IOC_GETFSUUID
struct fsuuid2 {
    __u8 len;
    __u8 uuid[16];
};
#define FS_IOC_GETFSUUID _IOR(0x15, 0, struct fsuuid2)
#endif

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000U
#endif

void mounted_table_done(MountedTable *t)
{
    for (uint32_t i = 0; t->volumes && i < t->n; i++) {
        if (t->volumes[i].root_fd >= 0)
            close(t->volumes[i].root_fd);
        if (t->volumes[i].device_fd >= 0)
            close(t->volumes[i].device_fd);
        free(t->volumes[i].target);
    }
    free(t->volumes);
    free(t->facts);
    *t = (MountedTable){0};
}

/* --- block devices ---------------------------------------------------------------------------- */

/* The block device with that number, by the name sysfs gives it. */
static int open_device(dev_t dev)
{
    _cleanup_free_ char *uevent = NULL;
    _cleanup_close_ int fd = -EBADF;
    char path[300];
    const char *name;
    struct stat st;
    int r;

    snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/uevent", major(dev), minor(dev));
    r = rooted_read(AT_FDCWD, path, 65536, &uevent, NULL);
    if (r < 0)
        return r;
    name = strstr(uevent, "DEVNAME=");
    if (!name)
        return -ENXIO;
    name += strlen("DEVNAME=");
    snprintf(path, sizeof(path), "/dev/%.*s", (int)MIN(strcspn(name, "\n"), (size_t)250), name);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0 || !S_ISBLK(st.st_mode) || st.st_rdev != dev)
        return -ENXIO;
    return TAKE_FD(fd);
}

static int read_device_number(const char *path, dev_t *ret)
{
    _cleanup_free_ char *text = NULL;
    unsigned a, b;
    int r = rooted_read(AT_FDCWD, path, 64, &text, NULL);

    if (r < 0)
        return r;
    if (sscanf(text, "%u:%u", &a, &b) != 2)
        return -EBADMSG;
    *ret = makedev(a, b);
    return 0;
}

/* The one device that a stacked one (dm, md) lies on. */
static int only_slave(dev_t dev, dev_t *ret)
{
    char path[320];
    _cleanup_closedir_ DIR *d = NULL;
    int n = 0, r;

    snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/slaves", major(dev), minor(dev));
    r = directory_from_fd(rooted_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY), &d);
    if (r < 0)
        return r;
    for (const struct dirent *e; (e = directory_next(d));)
        if (n++ == 0) {
            snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/slaves/%.200s/dev", major(dev),
                     minor(dev), e->d_name);
            r = read_device_number(path, ret);
        }
    return n == 1 ? r : -ENOENT;
}

/* Down through partitions and stacked devices to the disk at the bottom; partitions' beginnings are
 * added up. Where dm puts a volume is not looked at: volumes of one disk then share a head, but not
 * an order. */
static void find_disk(dev_t dev, VolumeFacts *f)
{
    f->disk_offset = 0;
    for (int depth = 0; depth < DISK_DEPTH_MAX; depth++) {
        char path[128];
        uint64_t sectors;
        dev_t below;

        snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition", major(dev), minor(dev));
        if (rooted_read_u64(AT_FDCWD, path, &sectors) >= 0) {
            snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/start", major(dev), minor(dev));
            if (rooted_read_u64(AT_FDCWD, path, &sectors) >= 0)
                f->disk_offset += sectors * 512;
            snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/../dev", major(dev), minor(dev));
            if (read_device_number(path, &below) < 0)
                break;
        } else if (only_slave(dev, &below) < 0)
            break;
        dev = below;
    }
    f->disk = dev;
}

/* A partition has the queue of its disk. */
static uint32_t read_chunk_bytes(dev_t dev)
{
    static const char *const places[] = {"", "../"};
    uint64_t kib;

    for (size_t i = 0; i < ELEMENTSOF(places); i++) {
        char path[128];

        snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%squeue/max_sectors_kb", major(dev),
                 minor(dev), places[i]);
        if (rooted_read_u64(AT_FDCWD, path, &kib) < 0)
            continue;
        if (kib < 4)
            break;
        return (uint32_t)ALIGN_DOWN(MIN(kib, CHUNK_MAX / 1024) * 1024, PACK_PAGE_SIZE);
    }
    return CHUNK_MIN;
}

/* --- filesystems ------------------------------------------------------------------------------ */

/* A mount that may serve a volume, its facts read once. */
typedef struct Candidate {
    const Mount *mount;
    uint8_t uuid[16];
    bool has_uuid;
    int root_fd, device_fd;
    dev_t device; /* 0: unknown */
    uint64_t size_bytes;
} Candidate;

/* True if the descriptor is of this very mount, and not of one that was put over it. */
static bool is_of_mount(int fd, const Mount *m)
{
    struct statx stx;
    struct stat st;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &stx) >= 0 && (stx.stx_mask & STATX_MNT_ID))
        return stx.stx_mnt_id == m->id;
    /* Before Linux 5.8. The files of a btrfs have another number than its mount shows. */
    return fstat(fd, &st) >= 0 &&
           (strcmp(m->fstype, "btrfs") == 0 || st.st_dev == makedev(m->major, m->minor));
}

static void read_superblock(Candidate *c)
{
    _cleanup_free_ uint8_t *head = malloc(SUPERBLOCK_READ_BYTES);
    ssize_t n = head ? pread(c->device_fd, head, SUPERBLOCK_READ_BYTES, 0) : -1;

    c->has_uuid = n > 0 && superblock_uuid(c->mount->fstype, head, (size_t)n, c->uuid) >= 0;
}

static bool candidate_open(Candidate *c, const Mount *m)
{
    bool btrfs = strcmp(m->fstype, "btrfs") == 0;
    struct fsuuid2 u = {0};
    struct stat st;

    *c = (Candidate){.mount = m, .root_fd = -EBADF, .device_fd = -EBADF};
    c->root_fd = open(m->target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (c->root_fd < 0)
        return false;
    if (!is_of_mount(c->root_fd, m)) {
        close(c->root_fd);
        return false;
    }
    /* btrfs has an anonymous number: one of its devices is the one the mount names. */
    if (m->major != 0)
        c->device = makedev(m->major, m->minor);
    else if (m->source[0] == '/' && stat(m->source, &st) >= 0 && S_ISBLK(st.st_mode))
        c->device = st.st_rdev;
    if (c->device != 0) {
        c->device_fd = open_device(c->device);
        if (c->device_fd >= 0 && ioctl(c->device_fd, BLKGETSIZE64, &c->size_bytes) < 0)
            c->size_bytes = 0;
    }
    if (ioctl(c->root_fd, FS_IOC_GETFSUUID, &u) == 0 && u.len == sizeof(c->uuid)) {
        memcpy(c->uuid, u.uuid, sizeof(c->uuid));
        c->has_uuid = true;
    } else if (c->device_fd >= 0)
        read_superblock(c);
    /* Its metadata is not in the page cache of that device. */
    if (btrfs && c->device_fd >= 0) {
        close(c->device_fd);
        c->device_fd = -EBADF;
    }
    return true;
}

static uint64_t subvolume_id(const Mount *m)
{
    const char *s = strcmp(m->fstype, "btrfs") == 0 ? strstr(m->super_options, "subvolid=") : NULL;

    return s ? strtoull(s + strlen("subvolid="), NULL, 10) : 0;
}

static bool serves(const Candidate *c, const PackVolume *s)
{
    return c->has_uuid && memcmp(c->uuid, s->uuid, sizeof(s->uuid)) == 0 &&
           subvolume_id(c->mount) == le64toh(s->subvolume_id);
}

/* The one whose root is higher up in the filesystem, then the shorter way to it. */
static bool is_better(const Mount *a, const Mount *b)
{
    size_t x = strlen(a->root), y = strlen(b->root);

    return x != y ? x < y : strlen(a->target) < strlen(b->target);
}

static int fill_volume(const PackVolume *s, uint32_t index, const Candidate *c, MountedVolume *m,
                       VolumeFacts *f)
{
    m->target = strdup(c->mount->target);
    m->root_fd = fcntl(c->root_fd, F_DUPFD_CLOEXEC, 3);
    if (!m->target || m->root_fd < 0)
        return m->target ? -errno : -ENOMEM;
    if (c->device_fd >= 0 && c->size_bytes == le64toh(s->device_size))
        m->device_fd = fcntl(c->device_fd, F_DUPFD_CLOEXEC, 3);
    f->mounted = true;
    f->device = m->device_fd >= 0;
    if (c->device != 0)
        find_disk(c->device, f);
    else
        f->disk = UINT64_MAX - index; /* like no other */
    /* btrfs has limits of its own that only its defaults tell. */
    m->chunk_bytes = strcmp(c->mount->fstype, "btrfs") != 0 && c->device != 0
                             ? read_chunk_bytes(c->device)
                             : CHUNK_MIN;
    return 0;
}

int mounted_table_read(const Pack *p, const char *root, MountedTable *ret)
{
    _cleanup_mounted_table_ MountedTable t = {.n = le32toh(p->header->n_volumes)};
    _cleanup_mount_table_ MountTable mounts = {0};
    _cleanup_free_ Candidate *candidates = NULL;
    size_t n = 0;
    int r;

    t.volumes = calloc((size_t)t.n + 1, sizeof(MountedVolume));
    t.facts = calloc((size_t)t.n + 1, sizeof(VolumeFacts));
    if (!t.volumes || !t.facts) {
        t.n = 0;
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < t.n; i++)
        t.volumes[i] = (MountedVolume){.root_fd = -EBADF, .device_fd = -EBADF};
    if (t.n == 0) {
        *ret = t;
        t = (MountedTable){0};
        return 0;
    }

    r = mount_table_read(AT_FDCWD, &mounts);
    if (r < 0)
        return r;
    candidates = calloc(mounts.n + 1, sizeof(Candidate));
    if (!candidates)
        return -ENOMEM;
    /* mount_table_select() is not asked: subvolumes of one btrfs have one number. */
    for (size_t i = 0; i < mounts.n; i++) {
        const Mount *m = &mounts.mounts[i];

        if (fstype_is_local_block(m->fstype) && path_is_below(m->target, root) &&
            candidate_open(&candidates[n], m))
            n++;
    }
    for (uint32_t k = 0; r >= 0 && k < t.n; k++) {
        const Candidate *best = NULL;

        for (size_t i = 0; i < n; i++)
            if (serves(&candidates[i], &p->volumes[k]) &&
                (!best || is_better(candidates[i].mount, best->mount)))
                best = &candidates[i];
        if (best)
            r = fill_volume(&p->volumes[k], k, best, &t.volumes[k], &t.facts[k]);
    }
    for (size_t i = 0; i < n; i++) {
        close(candidates[i].root_fd);
        if (candidates[i].device_fd >= 0)
            close(candidates[i].device_fd);
    }
    if (r < 0)
        return r;
    *ret = t;
    t = (MountedTable){0};
    return 0;
}
