/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The first program of a machine whose boot is recorded: own-disk INIT [ARGUMENT…]
 *
 * systemd-nspawn mounts /sys/devices read-only, but a real machine may set the read-ahead of its
 * own disk, which an exact recording does. This program makes the mount writable and executes INIT.
 * It is linked statically, so that it reads nothing from the machine's disk. */

#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    /* Without MS_BIND this also changes the superblock, which belongs to the machine's network. The
     * other mounts of this sysfs stay read-only. */
    if (mount(NULL, "/sys/devices", NULL,
              MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RELATIME, NULL) < 0)
        perror("own-disk: /sys/devices");
    execv(argv[1], argv + 1);
    perror(argv[1]);
    return 1;
}
