/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "replay/mounted.h"

#include "base/rooted.h"
#include "volume/mountinfo.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define MOUNTINFO_SIZE_MAX (8U * 1024 * 1024)

#ifndef FS_IOC_GETFSUUID
struct fsuuid2 {
    __u8 len;
    __u8 uuid[16];
};
#define FS_IOC_GETFSUUID _IOR(0x15, 0, struct fsuuid2)
#endif

/* Where the superblock of a filesystem type keeps its magic number and its UUID. */
typedef struct Superblock {
    const char *fstype;
    off_t magic_at;
    const char *magic;
    size_t magic_size;
    off_t uuid_at;
} Superblock;

static const Superblock superblocks[] = {
        {"ext2", 1024 + 0x38, "\x53\xef", 2, 1024 + 0x68},
        {"ext3", 1024 + 0x38, "\x53\xef", 2, 1024 + 0x68},
        {"ext4", 1024 + 0x38, "\x53\xef", 2, 1024 + 0x68},
        {"xfs", 0, "XFSB", 4, 32},
        {"btrfs", 65536 + 0x40, "_BHRfS_M", 8, 65536 + 0x20},
        {"f2fs", 1024, "\x10\x20\xf5\xf2", 4, 1024 + 0x6c},
};

static int superblock_uuid(int device_fd, const char *fstype, uint8_t ret[16])
{
    for (size_t i = 0; i < ELEMENTSOF(superblocks); i++) {
        const Superblock *s = &superblocks[i];
        char magic[8];

        if (strcmp(s->fstype, fstype) != 0)
            continue;
        if (pread(device_fd, magic, s->magic_size, s->magic_at) != (ssize_t)s->magic_size ||
            memcmp(magic, s->magic, s->magic_size) != 0 ||
            pread(device_fd, ret, 16, s->uuid_at) != 16)
            return -ENXIO;
        return 0;
    }
    return -EOPNOTSUPP;
}

/* The block device with that number, by the name sysfs gives it. */
static int open_device(unsigned maj, unsigned min)
{
    _cleanup_free_ char *uevent = NULL;
    _cleanup_close_ int fd = -EBADF;
    char path[300];
    const char *name;
    struct stat st;
    int r;

    snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/uevent", maj, min);
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
    if (fstat(fd, &st) < 0 || !S_ISBLK(st.st_mode) || st.st_rdev != makedev(maj, min))
        return -ENXIO;
    return TAKE_FD(fd);
}

/* btrfs has an anonymous number: its device is the one the mount names. */
static int open_device_of(const Mount *m)
{
    struct stat st;

    if (m->major != 0)
        return open_device(m->major, m->minor);
    if (m->source[0] != '/' || stat(m->source, &st) < 0)
        return -ENXIO;
    if (!S_ISBLK(st.st_mode))
        return -ENXIO;
    return open_device(major(st.st_rdev), minor(st.st_rdev));
}

static uint64_t subvolume_id(const Mount *m)
{
    const char *s = strcmp(m->fstype, "btrfs") == 0 ? strstr(m->super_options, "subvolid=") : NULL;

    return s ? strtoull(s + strlen("subvolid="), NULL, 10) : 0;
}

/* A mount that may serve a segment, its facts read once. */
typedef struct Candidate {
    const Mount *mount;
    uint8_t uuid[16];
    bool has_uuid;
    int root_fd, device_fd;
} Candidate;

static void candidate_open(Candidate *c, const Mount *m)
{
    struct fsuuid2 u = {0};
    struct stat st;

    c->mount = m;
    c->device_fd = -EBADF;
    c->root_fd = open(m->target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME);
    if (c->root_fd < 0)
        c->root_fd = open(m->target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (c->root_fd < 0 || fstat(c->root_fd, &st) < 0 ||
        st.st_dev != makedev(m->major, m->minor))
        return; /* mounted over since, or not ours to see */
    c->device_fd = open_device_of(m);
    if (ioctl(c->root_fd, FS_IOC_GETFSUUID, &u) == 0 && u.len == sizeof(c->uuid)) {
        memcpy(c->uuid, u.uuid, sizeof(c->uuid));
        c->has_uuid = true;
    } else if (c->device_fd >= 0)
        c->has_uuid = superblock_uuid(c->device_fd, m->fstype, c->uuid) >= 0;
}

static bool serves(const Candidate *c, const PackSegment *s)
{
    return c->has_uuid && c->root_fd >= 0 && memcmp(c->uuid, s->uuid, sizeof(s->uuid)) == 0 &&
           subvolume_id(c->mount) == le64toh(s->subvolume_id);
}

MountedSegment *mounted_segments_free(MountedSegment *m, uint32_t n)
{
    for (uint32_t i = 0; m && i < n; i++) {
        if (m[i].root_fd >= 0)
            close(m[i].root_fd);
        if (m[i].device_fd >= 0)
            close(m[i].device_fd);
    }
    free(m);
    return NULL;
}

int mounted_segments_find(const Pack *p, const char *root, MountedSegment **ret)
{
    _cleanup_mount_table_ MountTable t = {0};
    _cleanup_free_ size_t *chosen = NULL;
    _cleanup_free_ char *text = NULL;
    _cleanup_free_ Candidate *candidates = NULL;
    uint32_t n = le32toh(p->header->n_segments);
    MountedSegment *m;
    size_t n_chosen = 0;
    int r;

    r = rooted_read(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_SIZE_MAX, &text, NULL);
    if (r >= 0)
        r = mount_table_parse(text, &t, NULL);
    if (r >= 0)
        r = mount_table_select(&t, root, &chosen, &n_chosen);
    if (r < 0)
        return r;
    m = calloc(n + 1, sizeof(MountedSegment));
    candidates = calloc(n_chosen + 1, sizeof(Candidate));
    if (!m || !candidates) {
        free(m);
        return -ENOMEM;
    }
    for (size_t i = 0; i < n_chosen; i++)
        candidate_open(&candidates[i], &t.mounts[chosen[i]]);

    for (uint32_t k = 0; k < n; k++) {
        m[k] = (MountedSegment){-EBADF, -EBADF};
        for (size_t i = 0; i < n_chosen; i++) {
            uint64_t size = 0;

            if (!serves(&candidates[i], &p->segments[k]))
                continue;
            m[k].root_fd = fcntl(candidates[i].root_fd, F_DUPFD_CLOEXEC, 3);
            if (candidates[i].device_fd >= 0 &&
                ioctl(candidates[i].device_fd, BLKGETSIZE64, &size) == 0 &&
                size == le64toh(p->segments[k].device_size))
                m[k].device_fd = fcntl(candidates[i].device_fd, F_DUPFD_CLOEXEC, 3);
            break;
        }
    }
    for (size_t i = 0; i < n_chosen; i++) {
        if (candidates[i].root_fd >= 0)
            close(candidates[i].root_fd);
        if (candidates[i].device_fd >= 0)
            close(candidates[i].device_fd);
    }
    *ret = m;
    return 0;
}
