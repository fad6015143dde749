/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "measure/machine-counters.h"

#include "base/macros.h"
#include "base/memory.h"
#include "base/rooted.h"
#include "volume/mount-table.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#define TEXT_MAX    (1U << 20)
#define SECTOR_SIZE 512U

static void read_pressure(int root_fd, MachineCounters *c)
{
    _cleanup_free_ char *text = NULL;
    const char *full;

    if (rooted_read(root_fd, "/proc/pressure/io", TEXT_MAX, &text, NULL) < 0)
        return;
    (void)sscanf(text, "some %*s %*s %*s total=%" SCNu64, &c->io_some_usec);
    full = strstr(text, "\nfull ");
    if (full)
        (void)sscanf(full, "\nfull %*s %*s %*s total=%" SCNu64, &c->io_full_usec);
}

/* Finds the directory in /sys of the block device below "/". The device number of a btrfs is not
 * that of a block device, so for btrfs the name of the mounted device is used. 0 or -ENOENT. */
static int root_device(int root_fd, char *buf, size_t size)
{
    _cleanup_mount_table_ MountTable mounts = {0};
    const Mount *root;
    const char *name;

    if (mount_table_read(root_fd, &mounts) < 0)
        return -ENOENT;
    root = mount_table_root(&mounts);
    if (!root)
        return -ENOENT;
    if (root->major > 0) {
        snprintf(buf, size, "/sys/dev/block/%u:%u", root->major, root->minor);
        return 0;
    }
    name = strrchr(root->source, '/');
    if (strncmp(root->source, "/dev/", 5) != 0 || !name)
        return -ENOENT;
    snprintf(buf, size, "/sys/class/block/%s", name + 1);
    return 0;
}

static void read_disk(int root_fd, MachineCounters *c)
{
    _cleanup_free_ char *text = NULL;
    uint64_t reads, sectors;
    char device[4096], path[4200];

    if (root_device(root_fd, device, sizeof(device)) < 0)
        return;
    snprintf(path, sizeof(path), "%s/stat", device);
    if (rooted_read(root_fd, path, TEXT_MAX, &text, NULL) < 0 ||
        sscanf(text, "%" SCNu64 " %*u %" SCNu64, &reads, &sectors) != 2 ||
        sectors > UINT64_MAX / SECTOR_SIZE)
        return;
    c->disk_reads = reads;
    c->disk_read_bytes = sectors * SECTOR_SIZE;
}

MachineCounters machine_counters_read(int root_fd)
{
    MachineCounters c = {SESSION_UNKNOWN, SESSION_UNKNOWN, SESSION_UNKNOWN, SESSION_UNKNOWN};

    read_pressure(root_fd, &c);
    read_disk(root_fd, &c);
    return c;
}

uint64_t machine_memory_bytes(int root_fd)
{
    MemoryFacts m;

    return memory_facts_read(root_fd, &m) < 0 ? SESSION_UNKNOWN : m.total_bytes;
}

usec_t machine_packages_changed(int root_fd)
{
    static const char *const places[] = {
            "/var/lib/dpkg/status",      "/usr/lib/sysimage/rpm/rpmdb.sqlite",
            "/var/lib/rpm/rpmdb.sqlite", "/var/lib/rpm/Packages",
            "/var/lib/pacman/local",     "/lib/apk/db/installed",
    };
    usec_t newest = 0;

    for (size_t i = 0; i < ELEMENTSOF(places); i++) {
        _cleanup_close_ int fd = rooted_open(root_fd, places[i], O_PATH | O_CLOEXEC);
        struct stat st;

        if (fd >= 0 && fstat(fd, &st) == 0 && st.st_mtim.tv_sec > 0)
            newest = MAX(newest, timespec_nsec(&st.st_mtim) / NSEC_PER_USEC);
    }
    return newest > 0 ? newest : SESSION_UNKNOWN;
}
