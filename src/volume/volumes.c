/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/log.h"
#include "base/open.h"
#include "device/block-device.h"
#include "system/disk-call.h"
#include "volume/disk-facts.h"
#include "volume/fstab.h"
#include "volume/loop-file.h"
#include "volume/mount-table.h"
#include "volume/volume.h"

#include <blkid/blkid.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

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
    for (size_t i = 0; i < t->n_automounts; i++)
        free(t->automounts[i]);
    free(t->automounts);
    *t = (VolumeTable){0};
}

const Volume *volume_by_dev(const VolumeTable *t, uint64_t st_dev)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->volumes[i].st_dev == st_dev)
            return &t->volumes[i];
    return NULL;
}

const Volume *volume_by_mount(const VolumeTable *t, const Mount *m)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->volumes[i].mount_dev == makedev(m->major, m->minor) &&
            t->volumes[i].subvolume_id == mount_subvolume_id(m))
            return &t->volumes[i];
    return NULL;
}

static size_t length_without_slash(const char *path)
{
    size_t l = strlen(path);

    while (l > 0 && path[l - 1] == '/')
        l--;
    return l;
}

const Volume *volume_of_path(const VolumeTable *t, const char *root, const char *path,
                             const char **ret_below)
{
    size_t root_length = length_without_slash(root), best_length = 0;
    const Volume *best = NULL;

    for (size_t i = 0; i < t->n; i++) {
        const Volume *v = &t->volumes[i];
        size_t l = length_without_slash(v->mountpoint);

        if (path_is_below(path, v->mountpoint) && (!best || l > best_length)) {
            best = v;
            best_length = l;
        }
    }
    if (!best)
        return NULL;
    for (size_t i = 0; i < t->n_automounts; i++) {
        const char *a = t->automounts[i] + root_length;

        if (length_without_slash(a) > best_length && path_is_below(path, a))
            return NULL;
    }
    path += best_length;
    path += strspn(path, "/");
    *ret_below = *path ? path : ".";
    return best;
}

int volume_open(const char *target, uint64_t st_dev)
{
    _cleanup_close_ int fd = open(target, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0 || st.st_dev != st_dev)
        return -EXDEV;
    return TAKE_FD(fd);
}

int volume_open_path(const VolumeTable *t, const char *root, const char *path)
{
    _cleanup_close_ int dir = -EBADF;
    const char *below;
    const Volume *v = volume_of_path(t, root, path, &below);

    if (!v)
        return -EXDEV;
    dir = volume_open(v->target, v->st_dev);
    return open_beneath(dir, below);
}

static int parse_uuid(const char *text, uint8_t ret[16])
{
    uint8_t u[16] = {0};
    size_t n = 0;

    for (const char *p = text; *p; p++) {
        int digit;

        if (*p == '-')
            continue;
        digit = *p >= '0' && *p <= '9'   ? *p - '0'
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

/* Facts about a mounted filesystem, which are read from it. */
typedef struct Query {
    DiskJob job;
    char *target;
    bool btrfs;
    uint64_t mount_dev, block_dev;
    /* The answers. */
    uint64_t st_dev;
    char uuid[64]; /* "" if unknown */
} Query;

static void query_free(DiskJob *job)
{
    Query *q = (Query *)job;

    free(q->target);
    free(q);
}

/* Reads the UUID from the kernel, without reading the device. */
static void query_uuid(Query *q, int target_fd)
{
    uint8_t uuid[16];
    size_t n = 0;

    if (filesystem_uuid(target_fd, uuid) < 0)
        return;
    for (size_t i = 0; i < sizeof(uuid); i++)
        n += (size_t)snprintf(q->uuid + n, sizeof(q->uuid) - n, "%s%02x",
                              i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

/* Reads the UUID from the device with libblkid, which runs only its superblock probe. */
static void probe_uuid(Query *q)
{
    _cleanup_close_ int fd = block_device_open(q->block_dev);
    const char *uuid = NULL;
    blkid_probe pr = fd < 0 ? NULL : blkid_new_probe();

    if (!pr)
        return;
    if (blkid_probe_set_device(pr, fd, 0, 0) == 0) {
        blkid_probe_enable_superblocks(pr, 1);
        blkid_probe_set_superblocks_flags(pr, BLKID_SUBLKS_UUID | BLKID_SUBLKS_TYPE);
        if (blkid_do_safeprobe(pr) == 0 && blkid_probe_lookup_value(pr, "UUID", &uuid, NULL) == 0)
            snprintf(q->uuid, sizeof(q->uuid), "%s", uuid);
    }
    blkid_free_probe(pr);
}

/* Reads st_dev and, if the kernel knows it, the UUID from the mounted filesystem. Without an
 * answer from the kernel, the UUID is read from the device. */
static void query_run(DiskJob *job)
{
    Query *q = (Query *)job;
    _cleanup_close_ int fd =
            open(q->target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd >= 0) {
        if (fstat(fd, &st) == 0 && (q->btrfs || st.st_dev == q->mount_dev))
            q->st_dev = st.st_dev;
        query_uuid(q, fd);
    }
    if (!q->uuid[0])
        probe_uuid(q);
}

/* Sets the UUID of the volume. A pack cannot name a volume with a UUID of an unknown form. Returns
 * 0 or -ENOMEM. */
static int set_uuid(Volume *v, const char *text)
{
    char *copy;

    if (parse_uuid(text, v->uuid_bytes) < 0)
        return 0;
    copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    free(v->uuid);
    v->uuid = copy;
    return 0;
}

/* Reads the facts that only the mounted filesystem or its device has. Returns 0 or -ENOMEM. */
static int read_filesystem(Volume *v)
{
    Query *q = calloc(1, sizeof(*q));
    int r;

    if (!q)
        return -ENOMEM;
    *q = (Query){
            .job = {query_run, query_free},
            .target = strdup(v->target),
            .btrfs = strcmp(v->fstype, "btrfs") == 0,
            .mount_dev = v->mount_dev,
            .block_dev = v->block_dev,
            .st_dev = v->st_dev,
    };
    if (!q->target) {
        query_free(&q->job);
        return -ENOMEM;
    }
    r = disk_call(volume_call_dev(v), &q->job);
    if (r < 0) {
        log_debug_errno(r, "%s does not answer, its UUID is not known: %m", v->target);
        return 0;
    }
    v->st_dev = q->st_dev;
    r = set_uuid(v, q->uuid);
    query_free(&q->job);
    return r;
}

/* Returns the number of the device of a mount; 0 if it is unknown. If the filesystem's number is
 * anonymous (btrfs), the source of the mount names the device of the filesystem, or one of its
 * devices. */
static uint64_t device_of(int sys_fd, const Mount *m)
{
    uint64_t dev =
            m->major != 0 ? makedev(m->major, m->minor) : volume_source_number(sys_fd, m->source);
    struct stat st;

    /* A fixture has no devices. */
    if (dev == 0 && sys_fd == AT_FDCWD && m->source[0] == '/' && stat(m->source, &st) == 0 &&
        S_ISBLK(st.st_mode))
        dev = st.st_rdev;
    return dev;
}

/* Returns true if reads of the filesystem may wait for a program of a user. A fixture has no
 * devices. */
static bool is_of_user(int sys_fd, const MountTable *mounts, const Mount *m)
{
    return sys_fd == AT_FDCWD && strcmp(m->target, "/") != 0 &&
           loop_file_is_of_user(mounts, device_of(sys_fd, m));
}

static int fill_volume(int sys_fd, const Mount *m, const char *prefix, Volume *v)
{
    size_t l = strlen(prefix);
    int r;

    while (l > 0 && prefix[l - 1] == '/')
        l--;
    v->mount_dev = makedev(m->major, m->minor);
    v->st_dev = v->mount_dev;
    v->subvolume_id = mount_subvolume_id(m);
    v->uuid = strdup("");
    v->fstype = strdup(m->fstype);
    v->target = strdup(m->target);
    v->mountpoint = strdup(m->target[l] ? m->target + l : "/");
    v->subvolume = strdup(strcmp(m->fstype, "btrfs") == 0 ? m->root : "");
    if (!v->uuid || !v->fstype || !v->target || !v->mountpoint || !v->subvolume)
        return -ENOMEM;

    v->block_dev = device_of(sys_fd, m);
    r = disk_facts_read(sys_fd, v);
    return r < 0 ? r : 0;
}

/* Reads what the sysfs of the disks does not tell. Call it after mark_system(). Returns 0 or
 * -ENOMEM. */
static int complete_volumes(int sys_fd, VolumeTable *t)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < t->n; i++) {
        if (sys_fd == AT_FDCWD)
            r = read_filesystem(&t->volumes[i]);
        if (r >= 0)
            r = read_ahead_find(sys_fd, &t->volumes[i]);
    }
    return r < 0 ? r : 0;
}

static int add_automount(VolumeTable *t, const char *target)
{
    int r = grow_array(&t->automounts, &t->allocated_automounts, t->n_automounts + 1,
                       sizeof(char *));

    if (r < 0)
        return r;
    t->automounts[t->n_automounts] = strdup(target);
    return t->automounts[t->n_automounts++] ? 0 : -ENOMEM;
}

/* Sets `with_root` and `of_system`. An unreadable fstab has no lines. Returns 0 or -ENOMEM. */
static int mark_system(int sys_fd, const char *prefix, VolumeTable *t)
{
    _cleanup_free_ char *fstab = NULL;
    const Volume *root = NULL;
    int r = fstab_read(sys_fd, prefix, &fstab);

    if (r < 0)
        return r;
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->volumes[i].mountpoint, "/") == 0)
            root = &t->volumes[i];
    for (size_t i = 0; i < t->n; i++) {
        Volume *v = &t->volumes[i];

        v->with_root = v == root || (root && v->disk[0] && strcmp(v->disk, root->disk) == 0);
        v->of_system = v->with_root || fstab_mounts(fstab, v->mountpoint);
    }
    return 0;
}

int volume_table_read(int sys_fd, const char *prefix, VolumeTable *ret)
{
    _cleanup_volume_table_ VolumeTable t = {0};
    _cleanup_mount_table_ MountTable mounts = {0};
    _cleanup_free_ size_t *chosen = NULL;
    size_t n;
    int r;

    r = mount_table_read(sys_fd, &mounts);
    if (r >= 0)
        r = mount_table_select(&mounts, prefix, &chosen, &n);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++) {
        const Mount *m = &mounts.mounts[chosen[i]];

        if (is_of_user(sys_fd, &mounts, m))
            continue;
        r = grow_array(&t.volumes, &t.allocated, t.n + 1, sizeof(Volume));
        if (r < 0)
            return r;
        t.volumes[t.n] = (Volume){0};
        r = fill_volume(sys_fd, m, prefix, &t.volumes[t.n++]);
        if (r < 0)
            return r;
    }
    r = mark_system(sys_fd, prefix, &t);
    if (r >= 0)
        r = complete_volumes(sys_fd, &t);
    if (r < 0)
        return r;
    volume_table_drop_copies(&t);
    for (size_t i = 0; i < mounts.n; i++)
        if (strcmp(mounts.mounts[i].fstype, "autofs") == 0 &&
            path_is_below(mounts.mounts[i].target, prefix)) {
            r = add_automount(&t, mounts.mounts[i].target);
            if (r < 0)
                return r;
        }
    *ret = t;
    t = (VolumeTable){0};
    return 0;
}

/* Opens the path or, if it does not exist, the nearest directory above it. */
static int open_nearest(const char *path)
{
    _cleanup_free_ char *at = strdup(path);
    int fd = at ? open(at, O_PATH | O_CLOEXEC) : -ENOMEM;

    for (char *slash; at && fd < 0 && errno == ENOENT && (slash = strrchr(at, '/'));) {
        if (slash == at)
            return open("/", O_PATH | O_CLOEXEC);
        *slash = 0;
        fd = open(at, O_PATH | O_CLOEXEC);
    }
    return fd;
}

int volume_read_encryption_of_place(const VolumeTable *t, const char *path, Encryption *ret)
{
    _cleanup_close_ int fd = open_nearest(path);
    Encryption e = {0};
    const Volume *v;
    struct stat st;
    int r = 0;

    if (fd >= 0 && fstat(fd, &st) >= 0) {
        v = volume_by_dev(t, st.st_dev);
        if (v)
            e = v->encryption;
        else
            r = encryption_read_device(AT_FDCWD, st.st_dev, &e);
        if (r < 0)
            return r;
        e = encryption_read_file(fd, &e);
    }
    *ret = e;
    return 0;
}
