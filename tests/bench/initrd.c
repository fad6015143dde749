/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The initrd of the bench's machine: initrd {disk|-} ROOT INIT [ARGUMENT…]
 *
 * systemd-nspawn looks into the tree of a container before it starts it: for the version of its
 * systemd, and for its machine-id. The kernel of a real machine does not. The container's root is
 * therefore an empty directory in memory, and the system on the simulated disk is mounted at ROOT.
 * This program waits until the machine is switched on, makes ROOT the root directory, and executes
 * INIT. It is linked statically, so that it reads nothing from the simulated disk.
 *
 * systemd-nspawn also mounts /sys/devices read-only, but a real machine may set the read-ahead of
 * its own disk, which an exact recording does. With `disk` this program makes the mount
 * writable. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* lib/machine.py opens this named pipe when it switches the machine on. */
#define POWER "/run/bench/power"

/* What systemd-nspawn mounts below the root directory. */
static const char *const mounts[] = {"/dev", "/proc", "/run", "/sys", "/tmp"};

static int fail(const char *what)
{
    fprintf(stderr, "initrd: ");
    perror(what);
    return 1;
}

/* Waits until a writer has opened the pipe, and has closed it. */
static int await_power(void)
{
    char byte;
    int fd = open(POWER, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || read(fd, &byte, sizeof(byte)) < 0)
        return -1;
    return close(fd);
}

/* Moves the mount to its place below `root`, and `root` over it, as switch_root(8) does. */
static int switch_root(const char *root)
{
    char target[4096];

    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return -1;
    for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
        snprintf(target, sizeof(target), "%s%s", root, mounts[i]);
        if (mount(mounts[i], target, NULL, MS_MOVE, NULL) < 0)
            return -1;
    }
    if (chdir(root) < 0 || mount(root, "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0)
        return -1;
    return chdir("/");
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    /* Without MS_BIND this also changes the superblock, which belongs to the machine's network. The
     * other mounts of this sysfs stay read-only. */
    if (strcmp(argv[1], "disk") == 0 &&
        mount(NULL, "/sys/devices", NULL,
              MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RELATIME, NULL) < 0)
        fail("/sys/devices");
    if (await_power() < 0)
        return fail(POWER);
    if (switch_root(argv[2]) < 0)
        return fail(argv[2]);
    execv(argv[3], argv + 3);
    return fail(argv[3]);
}
