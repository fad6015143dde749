/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "volume/loop-file.h"

#include "base/rooted.h"
#include "device/block-device.h"
#include "system/disk-call.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* The kernel writes the path into one page. */
#define BACKING_FILE_MAX (64U * 1024)

typedef struct Search {
    const MountTable *mounts;
    bool of_user;
} Search;

/* Returns true if root serves the FUSE filesystem. */
static bool is_fuse_of_root(const Mount *m)
{
    static const char key[] = "user_id=";
    const char *p = m->super_options;

    if (strcmp(m->fstype, "fuse") != 0 && strncmp(m->fstype, "fuse.", 5) != 0 &&
        strcmp(m->fstype, "fuseblk") != 0)
        return false;
    for (; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (strncmp(p, key, strlen(key)) == 0)
            return strtoul(p + strlen(key), NULL, 10) == 0;
    return false;
}

/* Returns true if neither a user nor another machine serves the files of the mount. Types that are
 * not known count as served. */
static bool is_of_machine(const Mount *m)
{
    return fstype_is_local(m->fstype) || strcmp(m->fstype, "zfs") == 0 || is_fuse_of_root(m);
}

/* --- what the kernel says of the file --------------------------------------------------------- */

/* The kernel asks the filesystem of the file for the answer to LOOP_GET_STATUS64. */
typedef struct Identify {
    DiskJob job;
    uint64_t loop; /* the number of the loop device */
    char *path;    /* of the file, NULL: do not look it up */
    /* The answers. */
    bool known, found;
    uint64_t dev, inode;             /* of the file, if `known` */
    uint64_t found_dev, found_inode; /* of what is at the path, if `found` */
} Identify;

static void identify_free(DiskJob *job)
{
    Identify *x = (Identify *)job;

    free(x->path);
    free(x);
}

static void identify_run(DiskJob *job)
{
    Identify *x = (Identify *)job;
    _cleanup_close_ int fd = block_device_open(x->loop);
    struct loop_info64 info = {0}; /* valgrind does not know the request */
    struct stat st;

    x->known = fd >= 0 && ioctl(fd, LOOP_GET_STATUS64, &info) >= 0;
    x->dev = info.lo_device;
    x->inode = info.lo_inode;
    x->found = x->known && x->path && lstat(x->path, &st) >= 0;
    if (x->found) {
        x->found_dev = st.st_dev;
        x->found_inode = st.st_ino;
    }
}

/* Returns true if the file is on a mount that is_of_machine(). The number of its filesystem is in
 * no mount if it is on a subvolume of btrfs or on an overlay. Then the file must be the one at its
 * path. */
static bool is_identified(const MountTable *mounts, const Identify *x)
{
    if (!x->known)
        return false;
    for (size_t i = 0; i < mounts->n; i++)
        if (makedev(mounts->mounts[i].major, mounts->mounts[i].minor) == x->dev)
            return is_of_machine(&mounts->mounts[i]);
    return x->found && x->found_dev == x->dev && x->found_inode == x->inode;
}

/* Returns true if the file of the loop device is on a mount that is_of_machine(), whatever its path
 * says. Returns false also if the filesystem of the file does not answer, or permits no access:
 * FUSE permits root none by default. */
static bool file_is_of_machine(const MountTable *mounts, uint64_t loop, const char *path)
{
    Identify *x = calloc(1, sizeof(*x));
    bool of_machine;

    if (!x)
        return false;
    *x = (Identify){.job = {identify_run, identify_free}, .loop = loop};
    if (mount_table_path_is_local(mounts, path))
        x->path = strdup(path);
    if (disk_call(loop, &x->job) < 0)
        return false;
    of_machine = is_identified(mounts, x);
    identify_free(&x->job);
    return of_machine;
}

/* --- the search ------------------------------------------------------------------------------- */

/* Reads the path of the file from sysfs, without an access to the file; the caller frees it. It is
 * the path in the mount namespace of the process that attached the file, so it may name another
 * file here. Returns NULL on failure. */
static char *read_path(int sys_fd, const char *name)
{
    static const char deleted[] = " (deleted)";
    char path[512], *file = NULL;
    size_t n;

    snprintf(path, sizeof(path), "/sys/class/block/%s/loop/backing_file", name);
    if (rooted_read(sys_fd, path, BACKING_FILE_MAX, &file, &n) < 0)
        return NULL;
    if (n > 0 && file[n - 1] == '\n')
        file[--n] = 0;
    if (n > strlen(deleted) && strcmp(file + n - strlen(deleted), deleted) == 0)
        file[n - strlen(deleted)] = 0;
    return file;
}

/* A block_device_visit_t. */
static int visit(void *arg, int sys_fd, const char *name)
{
    Search *s = arg;
    _cleanup_free_ char *path = NULL;
    const Mount *m;
    uint64_t loop;

    if (strncmp(name, "loop", 4) != 0 || strspn(name + 4, "0123456789") != strlen(name + 4))
        return 0; /* a partition of a loop device is followed to the whole device */
    path = read_path(sys_fd, name);
    loop = block_device_number(sys_fd, name);
    m = path ? mount_table_find(s->mounts, path) : NULL;
    if (!m || !is_of_machine(m) || loop == 0 || !file_is_of_machine(s->mounts, loop, path))
        s->of_user = true;
    return 0;
}

bool loop_file_is_of_user(const MountTable *mounts, uint64_t dev)
{
    Search s = {.mounts = mounts};

    return block_device_visit_stack(AT_FDCWD, dev, visit, &s) == -ENOMEM || s.of_user;
}
