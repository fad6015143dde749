/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "execute/mounted.h"

#include "base/rooted.h"
#include "device/block-device.h"
#include "execute/superblock.h"
#include "system/item-read.h"
#include "volume/loop-file.h"
#include "volume/mount-table.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define CHUNK_MIN (128U * 1024) /* the default of read_ahead_kb: such a request is read whole */
#define CHUNK_MAX (2U * 1024 * 1024)

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

/* Finds the disk on which the volume lies, and its offset there. Volumes of one disk share a
 * head. */
static void find_disk(uint64_t dev, VolumeFacts *f)
{
    _cleanup_block_disk_ BlockDisk d = {0};

    f->disk = dev;
    f->disk_offset = 0;
    f->mapped = false;
    if (block_device_find_disk(AT_FDCWD, dev, &d) < 0)
        return;
    f->disk = block_device_number(AT_FDCWD, d.name);
    f->disk_offset = d.offset;
    f->mapped = d.mapped;
}

/* Returns the size of a chunk: the largest request of the device, but at most CHUNK_MAX. A
 * partition uses the request queue of its disk. A chunk is a multiple of the machine's page, so
 * that no page belongs to two chunks. */
static uint32_t read_chunk_bytes(dev_t dev, uint64_t page_bytes)
{
    static const char *const places[] = {"", "../"};
    uint64_t kib;

    for (size_t i = 0; i < ELEMENTSOF(places); i++) {
        char path[128];

        snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%squeue/max_sectors_kb", major(dev),
                 minor(dev), places[i]);
        if (rooted_read_u64(AT_FDCWD, path, &kib) < 0)
            continue;
        if (kib < page_bytes / 1024)
            break;
        return (uint32_t)ALIGN_DOWN(MIN(kib, CHUNK_MAX / 1024) * 1024, page_bytes);
    }
    return CHUNK_MIN;
}

/* --- filesystems ------------------------------------------------------------------------------ */

/* A mount that may serve a volume, with its facts, which are read once. */
typedef struct Candidate {
    const Mount *mount;
    uint8_t uuid[16];
    bool has_uuid;
    int root_fd, device_fd;
    dev_t device; /* 0: unknown */
    uint64_t size_bytes;
} Candidate;

/* Returns true if the descriptor is on this mount, and not on one that covers it. */
static bool is_of_mount(int fd, const Mount *m)
{
    struct statx stx;
    struct stat st;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &stx) >= 0 && (stx.stx_mask & STATX_MNT_ID))
        return stx.stx_mnt_id == m->id;
    /* The kernel is older than Linux 5.8. The files of a btrfs have another device number than
     * mountinfo states for the mount. */
    return fstat(fd, &st) >= 0 &&
           (strcmp(m->fstype, "btrfs") == 0 || st.st_dev == makedev(m->major, m->minor));
}

static void read_superblock(Candidate *c)
{
    _cleanup_free_ uint8_t *head = malloc(SUPERBLOCK_READ_BYTES);
    ssize_t n = head ? pread(c->device_fd, head, SUPERBLOCK_READ_BYTES, 0) : -1;

    c->has_uuid = n > 0 && superblock_uuid(c->mount->fstype, head, (size_t)n, c->uuid) >= 0;
}

static bool candidate_open(Candidate *c, const MountTable *mounts, const Mount *m)
{
    bool btrfs = strcmp(m->fstype, "btrfs") == 0;
    struct stat st;

    *c = (Candidate){.mount = m, .root_fd = -EBADF, .device_fd = -EBADF};
    c->root_fd = open(m->target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (c->root_fd < 0)
        return false;
    if (!is_of_mount(c->root_fd, m)) {
        close(c->root_fd);
        return false;
    }
    /* btrfs has an anonymous device number. The mount names one of its devices. */
    if (m->major != 0)
        c->device = makedev(m->major, m->minor);
    else if (m->source[0] == '/' && stat(m->source, &st) >= 0 && S_ISBLK(st.st_mode))
        c->device = st.st_rdev;
    if (strcmp(m->target, "/") != 0 && loop_file_is_of_user(mounts, c->device)) {
        close(c->root_fd);
        return false;
    }
    if (c->device != 0) {
        c->device_fd = block_device_open(c->device);
        if (c->device_fd >= 0 && ioctl(c->device_fd, BLKGETSIZE64, &c->size_bytes) < 0)
            c->size_bytes = 0;
    }
    c->has_uuid = filesystem_uuid(c->root_fd, c->uuid) >= 0;
    if (!c->has_uuid && c->device_fd >= 0 && superblock_is_known(m->fstype))
        read_superblock(c);
    /* The metadata of a btrfs is not in the page cache of its device. */
    if (btrfs && c->device_fd >= 0) {
        close(c->device_fd);
        c->device_fd = -EBADF;
    }
    return true;
}

static bool serves(const Candidate *c, const PackVolume *s)
{
    return c->has_uuid && memcmp(c->uuid, s->uuid, sizeof(s->uuid)) == 0 &&
           mount_subvolume_id(c->mount) == le64toh(s->subvolume_id);
}

/* Returns true if metadata of the volume has items, and this process may ask for them. */
static bool may_ask(const Pack *p, const PackVolume *s)
{
    MetadataReader first = le32toh(s->n_metadata) > 0
                                   ? pack_item(&p->metadata[le32toh(s->first_metadata)]).reader
                                   : METADATA_OF_DEVICE;

    return first != METADATA_OF_DEVICE && metadata_items_allowed(first);
}

static int fill_volume(const Pack *p, uint32_t index, const Candidate *c, MountedVolume *m,
                       VolumeFacts *f)
{
    const PackVolume *s = &p->volumes[index];

    m->target = strdup(c->mount->target);
    m->root_fd = fcntl(c->root_fd, F_DUPFD_CLOEXEC, 3);
    if (!m->target || m->root_fd < 0)
        return m->target ? -errno : -ENOMEM;
    if (c->device_fd >= 0 && c->size_bytes == le64toh(s->device_size))
        m->device_fd = fcntl(c->device_fd, F_DUPFD_CLOEXEC, 3);
    f->mounted = true;
    f->device = m->device_fd >= 0;
    f->items = may_ask(p, s);
    if (c->device != 0)
        find_disk(c->device, f);
    else
        f->disk = UINT64_MAX - index; /* shared with no other volume */
    /* btrfs splits requests by limits of its own. Only the defaults of these limits are known. */
    m->chunk_bytes = strcmp(c->mount->fstype, "btrfs") != 0 && c->device != 0
                             ? read_chunk_bytes(c->device, (uint64_t)sysconf(_SC_PAGESIZE))
                             : CHUNK_MIN;
    return 0;
}

/* The mounts that may serve a volume of the pack. */
typedef struct Candidates {
    MountTable mounts;
    Candidate *items;
    size_t n;
} Candidates;

static void candidates_done(Candidates *c)
{
    for (size_t i = 0; i < c->n; i++) {
        close(c->items[i].root_fd);
        if (c->items[i].device_fd >= 0)
            close(c->items[i].device_fd);
    }
    free(c->items);
    mount_table_done(&c->mounts);
}

/* Returns true if the mount is at the place where the pack's volume was mounted when the pack was
 * planned. */
static bool is_in_place(const Mount *m, const char *root, const char *mountpoint)
{
    size_t l = strcmp(root, "/") == 0 ? 0 : strlen(root);

    return strcmp(m->target[l] ? m->target + l : "/", mountpoint) == 0;
}

/* Returns true if the mount may be of a filesystem that had this type when the pack was planned.
 * One that was ext3 may be ext4 now. */
static bool is_of_type(const Mount *m, const char *fstype)
{
    return strcmp(m->fstype, fstype) == 0 ||
           (strncmp(m->fstype, "ext", 3) == 0 && strncmp(fstype, "ext", 3) == 0);
}

/* Returns the mount that serves the volume, or NULL. If there are several, the one at the volume's
 * old mount point is preferred, because another may be a copy of the filesystem with the same UUID.
 * If none is there, the one that shows the largest part of the filesystem is preferred. */
static const Candidate *candidates_find(const Candidates *c, const Pack *p, const PackVolume *s,
                                        const char *root)
{
    const char *mountpoint = pack_string(p, s->mountpoint);
    const Candidate *best = NULL;
    bool best_in_place = false;

    for (size_t i = 0; i < c->n; i++) {
        const Candidate *x = &c->items[i];
        bool in_place;

        if (!serves(x, s))
            continue;
        in_place = is_in_place(x->mount, root, mountpoint);
        if (!best || in_place > best_in_place ||
            (in_place == best_in_place && mount_is_better(x->mount, best->mount))) {
            best = x;
            best_in_place = in_place;
        }
    }
    return best;
}

/* Returns true if the mount is at the old place of one of the pack's volumes. */
static bool is_planned_place(const Pack *p, const Mount *m, const char *root)
{
    for (uint32_t k = 0; k < le32toh(p->header->n_volumes); k++)
        if (is_in_place(m, root, pack_string(p, p->volumes[k].mountpoint)))
            return true;
    return false;
}

/* Returns true if the mount may serve a volume that no opened mount serves at its old place. */
static bool is_wanted(const Candidates *c, const Pack *p, const Mount *m, const char *root)
{
    for (uint32_t k = 0; k < le32toh(p->header->n_volumes); k++) {
        const PackVolume *s = &p->volumes[k];
        const Candidate *x;

        if (!is_of_type(m, pack_string(p, s->fstype)))
            continue;
        x = candidates_find(c, p, s, root);
        if (!x || !is_in_place(x->mount, root, pack_string(p, s->mountpoint)))
            return true;
    }
    return false;
}

/* Opens the mounts below the root that are at an old place of a volume, or those of the others that
 * are wanted. */
static void candidates_add(Candidates *c, const Pack *p, const char *root, bool in_place)
{
    for (size_t i = 0; i < c->mounts.n; i++) {
        const Mount *m = &c->mounts.mounts[i];

        if (fstype_is_local_block(m->fstype) && path_is_below(m->target, root) &&
            is_planned_place(p, m, root) == in_place && (in_place || is_wanted(c, p, m, root)) &&
            candidate_open(&c->items[c->n], &c->mounts, m))
            c->n++;
    }
}

/* Opens the mounts that may serve a volume of the pack. The other mounts are not touched, because
 * the disk of one of them may not answer. mount_table_select() cannot be used here, because it
 * chooses before the UUID is known. */
static int candidates_read(const Pack *p, const char *root, Candidates *c)
{
    int r = mount_table_read(AT_FDCWD, &c->mounts);

    if (r < 0)
        return r;
    c->items = calloc(c->mounts.n + 1, sizeof(Candidate));
    if (!c->items)
        return -ENOMEM;
    candidates_add(c, p, root, true);
    candidates_add(c, p, root, false);
    return 0;
}

/* Initialises the table: every volume of the pack counts as not mounted. */
static int mounted_table_init(MountedTable *t, uint32_t n)
{
    t->volumes = calloc((size_t)n + 1, sizeof(MountedVolume));
    t->facts = calloc((size_t)n + 1, sizeof(VolumeFacts));
    if (!t->volumes || !t->facts)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        t->volumes[i] = (MountedVolume){.root_fd = -EBADF, .device_fd = -EBADF};
    t->n = n;
    return 0;
}

int mounted_table_read(const Pack *p, const char *root, MountedTable *ret)
{
    _cleanup_(candidates_done) Candidates candidates = {0};
    _cleanup_mounted_table_ MountedTable t = {0};
    int r = mounted_table_init(&t, le32toh(p->header->n_volumes));

    if (r >= 0 && t.n > 0)
        r = candidates_read(p, root, &candidates);
    for (uint32_t k = 0; r >= 0 && k < t.n; k++) {
        const Candidate *c = candidates_find(&candidates, p, &p->volumes[k], root);

        if (c)
            r = fill_volume(p, k, c, &t.volumes[k], &t.facts[k]);
    }
    if (r < 0)
        return r;
    *ret = t;
    t = (MountedTable){0};
    return 0;
}
