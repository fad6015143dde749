/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "measure/machine-counters.h"

#include "base/hash.h"
#include "base/macros.h"
#include "base/rooted.h"
#include "device/block-device.h"
#include "system/memory.h"
#include "volume/mount-table.h"
#include "volume/volume.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

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

/* Returns the number of the block device below "/", or 0. The device number of a btrfs is not that
 * of a block device, so for btrfs the name of the mounted device is used. */
static uint64_t root_device(int root_fd)
{
    _cleanup_mount_table_ MountTable mounts = {0};
    const Mount *root;

    if (mount_table_read(root_fd, &mounts) < 0)
        return 0;
    root = mount_table_root(&mounts);
    if (!root)
        return 0;
    return root->major > 0 ? makedev(root->major, root->minor)
                           : volume_source_number(root_fd, root->source);
}

static void read_disk(int root_fd, MachineCounters *c)
{
    _cleanup_free_ char *text = NULL;
    uint64_t reads, sectors;
    uint64_t dev = root_device(root_fd);
    char path[64];

    snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/stat", major(dev), minor(dev));
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

void machine_disk(int root_fd, char buf[static MACHINE_DISK_SIZE])
{
    _cleanup_free_ char *hardware = NULL;

    *buf = 0;
    if (block_device_hardware(root_fd, root_device(root_fd), &hardware) >= 0)
        snprintf(buf, MACHINE_DISK_SIZE, "%016" PRIx64, hash64(hardware, strlen(hardware), 0));
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
