/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Recognizes block devices whose content a user serves. udisks(8) attaches a file to a loop device
 * for any user at the screen, and mounts the filesystem in it. If that file is on a FUSE filesystem
 * of the user, each read of the device waits for a program of the user, without a limit. Needs only
 * libc: headstart-replay uses it, too. */

#include "volume/mountinfo.h"

/* Returns true if the device lies on a loop device whose file a user other than root serves, or
 * whose file cannot be found. Reads nothing from the device. */
bool loop_file_is_of_user(const MountTable *mounts, uint64_t dev);
