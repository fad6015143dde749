/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "state/early-pack.h"

#include "base/atomic-file.h"
#include "base/rooted.h"
#include "boot/last-control.h"
#include "state/idle-boot.h"
#include "state/packs.h"
#include "state/rerecord.h"
#include "volume/mount-table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "config-paths.h"

/* Opens the directory of the copies. If it does not exist, it is created if `create` is true;
 * otherwise -ENOENT is returned. */
static int open_directory(int system_fd, bool create)
{
    int fd = rooted_open(system_fd, HEADSTART_SYSCONF_DIR, O_RDONLY | O_DIRECTORY);
    int parent;

    if (fd != -ENOENT || !create)
        return fd;
    parent = rooted_open(system_fd, "/etc", O_RDONLY | O_DIRECTORY);
    if (parent < 0)
        return parent;
    fd = mkdirat(parent, strrchr(HEADSTART_SYSCONF_DIR, '/') + 1, 0755) < 0 ? -errno : 0;
    close(parent);
    return fd < 0 ? fd : rooted_open(system_fd, HEADSTART_SYSCONF_DIR, O_RDONLY | O_DIRECTORY);
}

/* Returns the path within its filesystem of a path below the mount point, in memory that the caller
 * frees. */
static char *path_in_filesystem(const Mount *m, const char *path)
{
    char *ret;

    return asprintf(&ret, "%s%s", strcmp(m->root, "/") == 0 ? "" : m->root,
                    strcmp(m->target, "/") == 0 ? path : path + strlen(m->target)) < 0
                   ? NULL
                   : ret;
}

/* Returns true if another directory of the root's filesystem is mounted above the state directory,
 * as OSTree does with /var. The sandbox of a unit mounts the state directory over itself, which
 * changes nothing. */
static bool is_bind_mounted(int system_fd, const char *state)
{
    _cleanup_mount_table_ MountTable table = {0};
    _cleanup_free_ char *early = NULL, *now = NULL;
    const Mount *root, *mount;

    if (mount_table_read(system_fd, &table) < 0)
        return false;
    root = mount_table_root(&table);
    mount = mount_table_find(&table, state);
    if (!root || !mount)
        return false;
    early = path_in_filesystem(root, state);
    now = path_in_filesystem(mount, state);
    return early && now && strcmp(early, now) != 0;
}

/* Returns true if early boot cannot see the state directory: it is not on the filesystem of the
 * root, or only a later mount makes it visible. */
static bool is_apart(int system_fd, const char *state, int state_fd)
{
    int root = rooted_open(system_fd, "/", O_PATH | O_DIRECTORY);
    struct stat r, s;
    bool apart;

    if (root < 0)
        return false;
    apart = fstat(root, &r) >= 0 && fstat(state_fd, &s) >= 0 &&
            (r.st_dev != s.st_dev || is_bind_mounted(system_fd, state));
    close(root);
    return apart;
}

/* Creates, replaces or removes a copy in the directory of the copies. An empty file that exists is
 * not written again. A copy that cannot be replaced is removed: early boot does without a copy, but
 * would follow an outdated one. It is no error that a read-only root filesystem without a copy gets
 * none. */
static int update(int fd, const char *name, bool wanted, const void *bytes, size_t size)
{
    /* unlinkat(2) would fail on a read-only filesystem even if there is nothing to remove. */
    bool absent = faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
    int r;

    if (!wanted) {
        atomic_file_remove_temporaries(fd, name);
        return absent || unlinkat(fd, name, 0) >= 0 || errno == ENOENT ? 0 : -errno;
    }
    if (size > 0)
        r = packs_write(fd, name, bytes, size);
    else
        r = absent ? atomic_file_write(fd, name, "", 0, 0600) : 0;
    if (r < 0 && !absent)
        (void)unlinkat(fd, name, 0);
    return r == -EROFS && absent ? 0 : r;
}

/* Returns true if early boot does not read copies of this state directory. */
static bool is_foreign(int system_fd, const char *state)
{
    return system_fd == AT_FDCWD && strcmp(state, HEADSTART_STATE_DIR) != 0;
}

/* Copies STATE/last-control, or removes the copy. A copy that is equal is not written again. */
static int update_last_control(int fd, bool wanted, int state_fd)
{
    char noted[KERNEL_BOOT_ID_SIZE], copied[KERNEL_BOOT_ID_SIZE];

    if (!wanted || last_control_read(state_fd, LAST_CONTROL_FILE, noted) < 0)
        return update(fd, LAST_CONTROL_FILE, false, NULL, 0);
    if (last_control_read(fd, LAST_CONTROL_FILE, copied) >= 0 && strcmp(noted, copied) == 0)
        return 0;
    return last_control_write(fd, noted);
}

int early_pack_update_last_control(int system_fd, const char *state, int state_fd)
{
    _cleanup_close_ int fd = -EBADF;

    if (is_foreign(system_fd, state))
        return 0;
    fd = open_directory(system_fd, false);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    return update_last_control(fd, faccessat(fd, "boot.pack", F_OK, AT_SYMLINK_NOFOLLOW) >= 0,
                               state_fd);
}

int early_pack_update(int system_fd, const char *state, int state_fd, const void *bytes,
                      size_t size)
{
    _cleanup_close_ int fd = -EBADF;
    char flag[RERECORD_NAME_MAX];
    bool wanted, idle;
    int r, k, l;

    if (is_foreign(system_fd, state))
        return 0;
    /* Early boot cannot see the request to record the next boot without replay, so there are no
     * copies while the request exists. */
    wanted = bytes && is_apart(system_fd, state, state_fd) &&
             faccessat(state_fd, rerecord_name(flag, STAGE_BOOT), F_OK, 0) < 0;
    idle = wanted && faccessat(state_fd, STATE_IDLE_BOOT, F_OK, 0) >= 0;
    fd = open_directory(system_fd, wanted);
    if (fd < 0)
        return (fd == -ENOENT && !wanted) || fd == -EROFS ? 0 : fd;
    r = update(fd, "boot.pack", wanted, bytes, size);
    k = update(fd, STATE_IDLE_BOOT, idle, NULL, 0);
    l = update_last_control(fd, wanted, state_fd);
    return r < 0 ? r : k < 0 ? k : l;
}
