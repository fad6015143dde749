/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds out which filesystems the boot mounts by /etc/fstab. Internal to src/volume. */

#include "base/macros.h"

/* Reads PREFIX/etc/fstab below sys_fd (AT_FDCWD: this machine). The caller frees *ret. It is "" if
 * the file cannot be read or is larger than 1 MiB. Returns 0 or -ENOMEM. */
int fstab_read(int sys_fd, const char *prefix, char **ret);

/* Returns true if a line of the text mounts a filesystem on `mountpoint` at boot, and if only root
 * may mount it. Lines with the options noauto, user, users, owner or group do not count: such a
 * line may be the place for anybody's disk. Returns false also if memory is short. */
bool fstab_mounts(const char *text, const char *mountpoint);
