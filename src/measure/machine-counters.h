/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Counters and facts of the machine that a history records, read below a root directory
 * (base/rooted.h). Numbers that cannot be read are SESSION_UNKNOWN. */

#include "measure/session-record.h"

typedef struct MachineCounters {
    uint64_t io_some_usec, io_full_usec;  /* /proc/pressure/io since the kernel started */
    uint64_t disk_reads, disk_read_bytes; /* of the disk below the root filesystem */
} MachineCounters;

MachineCounters machine_counters_read(int root_fd);

/* Writes a hash, 16 hexadecimal digits, of what identifies the disk below the root filesystem:
 * block_device_hardware(). Writes "" if that is not known. */
#define MACHINE_DISK_SIZE 17
void machine_disk(int root_fd, char buf[static MACHINE_DISK_SIZE]);

/* Returns the memory of the machine according to /proc/meminfo. */
uint64_t machine_memory_bytes(int root_fd);

/* Returns the wall clock of the last change of the package database: dpkg, RPM, pacman or apk. */
usec_t machine_packages_changed(int root_fd);
