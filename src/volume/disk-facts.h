/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads facts of the devices below a filesystem from sysfs. Internal to src/volume. `sys_fd` is
 * that of volume_table_read(). */

#include "volume/volume.h"

/* Fills device, disk, scheduler, rotational, removable, device_class, profile, encryption and
 * size_bytes of the volume from its block_dev. Unknown facts are "" or zero. Returns 0 or
 * -ENOMEM. */
int disk_facts_read(int sys_fd, Volume *v);

/* Fills read_ahead_kb and read_ahead_path from the bdi of the volume. Returns 0 or -ENOMEM. */
int read_ahead_find(int sys_fd, Volume *v);
